#pragma once

#include "splat/levels/level_pyramid.hpp"
#include "view/server/city_facts.hpp"
#include "view/server/picker.hpp"

#include <string>

/// The answers of the server about a city (docs/viewer.md lists their keys). Every text is valid UTF-8.
namespace citysplat::view {

std::string city_json(const ShownCity& city, const splat::LevelPyramid& levels);
std::string progress_json(const ShownCity& city, const splat::LevelPyramid& levels);
std::string path_json(const Trajectory& trajectory);
std::string pick_json(const ShownCity& city, const Picked& picked);

}  // namespace citysplat::view
