#pragma once

#include "model/trajectory.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

/// What `info` says of a trajectory.
namespace citysplat::cli {

nlohmann::json trajectory_json(const std::string& file, const Trajectory& trajectory);
std::string trajectory_page(const std::string& file, const Trajectory& trajectory);

/// The points of a cloud whose times a trajectory does not cover.
struct NotCovered {
    std::uint64_t points, of;
    double begin_s, end_s;  ///< times of the whole cloud
};
/// A note about them: how many, and both time spans. Requires points > 0.
std::string not_covered_text(const NotCovered& not_covered, const Trajectory& trajectory);

}  // namespace citysplat::cli
