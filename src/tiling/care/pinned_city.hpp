#pragma once

#include "tiling/store/catalog.hpp"
#include "tiling/store/city_lock.hpp"

#include <vector>

namespace citysplat::tiling {

/// The generations of a city, each pinned: gc leaves their objects alone.
struct PinnedCity {
    std::vector<GenerationRow> generations;
    CityLock pins;
};
PinnedCity pin_all(Catalog& catalog, const CityPaths& paths);

}  // namespace citysplat::tiling
