namespace citysplat {}
