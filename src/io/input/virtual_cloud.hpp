#pragma once

#include <filesystem>
#include <vector>

namespace citysplat::io {

/// The files of a virtual point cloud (.vpc, as PDAL wrench and QGIS write them): a GeoJSON FeatureCollection
/// of STAC items, each with the file of a cloud among its assets. Relative names are relative to the list.
/// Throws InputError naming the item when it has no file, or one that is not on this machine.
std::vector<std::filesystem::path> virtual_cloud_files(const std::filesystem::path& path);

}  // namespace citysplat::io
