#pragma once

#include "core/cancel.hpp"
#include "diff/catalog_diff.hpp"
#include "diff/surface_diff.hpp"
#include "gis/geopackage.hpp"
#include "model/class_map.hpp"
#include "tiling/store/catalog.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// What a catalog knows of a generation, as layers for maps.
namespace citysplat::gis {

struct LayerCounts {
    std::uint64_t tiles = 0, inputs = 0, trajectories = 0, tile_changes = 0, changes = 0;
};

/// Differences to an earlier generation. Without them the layers of changes are empty.
struct LayerChanges {
    std::int64_t from = 0, from_tile_size_m = 0;
    diff::CatalogDiff catalog;
    std::optional<diff::SurfaceDiff> surfaces;
};

struct LayerWish {
    tiling::GenerationRow generation;
    ClassMap classes;
    std::optional<LayerChanges> changes;
};

struct LayerReport {
    LayerCounts counts;
    std::vector<std::string> warnings;  ///< trajectories that cannot be read any more
};

/// Writes the layers tiles, inputs, trajectories, tile_changes and changes. Trajectories are read from their
/// files, a place every half metre.
LayerReport write_city_layers(tiling::Catalog& catalog, const LayerWish& wish,
                              const std::filesystem::path& path, const CancelToken& cancel);

}  // namespace citysplat::gis
