#pragma once

#include "core/cancel.hpp"
#include "core/hash.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"

#include <cstdint>
#include <filesystem>
#include <map>

namespace citysplat::gis {

struct EptWish {
    const TileSource& city;
    std::int64_t tile_size_m = 64;
    std::map<TileKey, Hash128> digests;  ///< of the splats of each tile of the city
};

struct EptReport {
    std::uint64_t points = 0;
    std::uint64_t nodes_written = 0, nodes_removed = 0;
    std::uint64_t sectors = 0, sectors_made = 0;
    bool kept_some = false;  ///< the directory held an earlier state of this city
};

/// Writes the centres of all splats, with normal, radius, intensity and class, as an Entwine point tile set:
/// nodes compressed with zstd, JSON hierarchy (ept_tree.hpp says which point is where). Into a directory that
/// this function made before it writes only what changed: nodes of sectors whose tiles are others now, and
/// those above them. Every file is what a first export into the same cube would write. A run that was stopped
/// leaves a mixture; the next one writes everything anew. Throws ConfigError when the directory holds
/// anything else. Holds the points of one sector, and of the nodes above it.
EptReport write_ept(const EptWish& wish, const std::filesystem::path& folder, const CancelToken& cancel,
                    Progress& progress);

}  // namespace citysplat::gis
