#pragma once

#include "model/region/region.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::io {

/// A polygon that somebody drew, or several.
struct RegionFile {
    std::vector<Polygon> polygons;
    std::string crs;  ///< what the file says about its coordinate system; empty: nothing
};

/// Reads GeoJSON (Polygon, MultiPolygon, Feature, FeatureCollection) or WKT (POLYGON, MULTIPOLYGON, with Z, M
/// and "SRID=n;" as PostGIS writes them; several, one after the other). Heights are passed over. Throws
/// InputError naming the file and the ring when it is neither, has no polygon, or one that is not simple.
RegionFile read_region(const std::filesystem::path& path);

/// The corners in another coordinate system, corner by corner: edges are straight in both.
void convert_region(RegionFile& region, const std::string& to, const std::filesystem::path& path);

}  // namespace citysplat::io
