#pragma once

#include "gis/city_layers.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::cli {

class Context;

/// The flags of `export --format gpkg`.
struct GeoPackageFlags {
    std::string from;
    bool surfaces = false;
    std::vector<const CLI::Option*> options;  ///< that have no meaning with other formats

    void add_to(CLI::App& verb);
};

/// Writes layers for map programs, and says what had to be left out.
gis::LayerReport write_layers(Context& context, tiling::Catalog& catalog, const gis::LayerWish& wish,
                              const std::string& out);

/// Writes what the catalog knows of a generation (nothing: the latest) for map programs.
void export_geopackage(Context& context, const GeoPackageFlags& flags, const std::string& city,
                       std::optional<std::int64_t> generation, const std::string& out);

}  // namespace citysplat::cli
