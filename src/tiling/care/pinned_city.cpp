#include "tiling/care/pinned_city.hpp"

namespace citysplat::tiling {

PinnedCity pin_all(Catalog& catalog, const CityPaths& paths) {
    PinnedCity pinned{{}, CityLock::several(paths, File::Mode::read)};
    for (const GenerationRow& row : catalog.history()) {
        // Between reading the row and pinning it gc may have forgotten it.
        const auto now = pinned.pins.add_pin(row.id) ? catalog.generation(row.id) : std::nullopt;
        if (now) pinned.generations.push_back(*now);
    }
    return pinned;
}

}  // namespace citysplat::tiling
