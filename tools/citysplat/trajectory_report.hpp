#pragma once

#include "core/trajectory.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

/// What `info` says of a trajectory.
namespace citysplat::cli {

nlohmann::json trajectory_json(const std::string& file, const Trajectory& trajectory);
std::string trajectory_page(const std::string& file, const Trajectory& trajectory);

/// Says when a cloud with times from `begin_s` to `end_s` is not covered.
std::optional<std::string> not_covered(const std::string& cloud, double begin_s, double end_s,
                                       const Trajectory& trajectory);

}  // namespace citysplat::cli
