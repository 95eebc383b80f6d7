#include "core/class_map.hpp"
#include "tiling/tile_grid.hpp"

int main() {
    const citysplat::tiling::TileGrid grid(50);
    const bool road = citysplat::ClassMap::load("synthetic").at(7).name == "road";
    return road && grid.base_tile_of(-1, 0).ix == -1 ? 0 : 1;
}
