#pragma once

#include "adjust/cells.hpp"
#include "adjust/sights.hpp"

#include <span>

namespace citysplat::adjust {

/// Whether a thing that one drive saw for a while moved on: the slots just before and after saw through the
/// place where it was, at least three of them and at least half as many as saw it. `sighting`: slots of one
/// drive without long gaps, in ascending order.
bool moved_on(std::span<const SlotOfCell> sighting, const Corrections& corrections, const Sights& sights);

}  // namespace citysplat::adjust
