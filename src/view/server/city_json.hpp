#pragma once

#include "splat/levels/level_pyramid.hpp"
#include "view/scans/distance_cloud.hpp"
#include "view/scans/scan_folder.hpp"
#include "view/server/city_facts.hpp"
#include "view/server/generation_diff.hpp"
#include "view/server/picker.hpp"
#include "view/server/tile_check.hpp"

#include <string>

/// The answers of the server about a city (docs/viewer.md lists their keys). Every text is valid UTF-8.
namespace citysplat::view {

struct ShownDiff;

std::string city_json(const ShownCity& city, const splat::LevelPyramid& levels);
/// `check` may be missing.
std::string progress_json(const ShownCity& city, const splat::LevelPyramid& levels, const TileCheck* check);
/// Both may be missing: then there are no points.
std::string distances_json(const DistanceCloud* cloud, const splat::LevelPyramid* levels,
                           const std::string& key);
std::string path_json(const Trajectory& trajectory);
/// Sensors, times and poses; none without a folder.
std::string scans_json(const ScanFolder* scans);
std::string boxes_json(std::span<const Track> boxes);
std::string generations_json(std::span<const GenerationFacts> generations);
std::string diff_json(const ShownDiff& diff, std::span<const TileChange> changes);
std::string pick_json(const ShownCity& city, const Picked& picked);

}  // namespace citysplat::view
