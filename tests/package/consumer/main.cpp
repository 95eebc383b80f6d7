#include "model/class_map.hpp"
#include "model/tile_grid.hpp"

int main() {
    const citysplat::TileGrid grid(50);
    const bool road = citysplat::ClassMap::load("synthetic").at(7).name == "road";
    return road && grid.base_tile_of(-1, 0).ix == -1 ? 0 : 1;
}
