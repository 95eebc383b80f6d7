#pragma once

#include "adjust/thickness.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

/// How thick surfaces are because passes disagree, for scripts and for people.
namespace citysplat::cli {

nlohmann::json thickness_json(const adjust::Thickness& thickness);
/// One line without its end.
std::string thickness_text(const adjust::Thickness& thickness);
/// A line for each of the worst places.
std::string worst_text(const adjust::Thickness& thickness);
/// What a user should know of it; nothing when surfaces are thin, or too few cells were seen twice to say.
std::optional<std::string> thickness_warning(const adjust::Thickness& thickness);

}  // namespace citysplat::cli
