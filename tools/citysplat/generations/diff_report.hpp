#pragma once

#include "diff/catalog_diff.hpp"
#include "diff/splat_diff.hpp"
#include "diff/surface_diff.hpp"
#include "model/class_map.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

/// What differs between two generations, in JSON and for people.
namespace citysplat::cli {

nlohmann::json diff_json(const diff::CatalogDiff& diff);
nlohmann::json diff_json(const diff::SplatDiff& diff, const ClassMap& classes);
nlohmann::json diff_json(const diff::SurfaceDiff& diff, const ClassMap& classes);

/// All that `diff` has put into one object, for people. Of long lists the beginning.
std::string diff_text(const nlohmann::json& diff);

}  // namespace citysplat::cli
