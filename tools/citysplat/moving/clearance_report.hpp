#pragma once

#include "sim/clearance/clearance.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace citysplat::cli {

/// What is said about a body along its way.
nlohmann::json clearance_json(const sim::ClearanceReport& report, double limit_m,
                              const sim::Traffic& traffic);
std::string clearance_text(const sim::ClearanceReport& report, double limit_m, const sim::Traffic& traffic);

/// The box of an actor's shape in the frame of its track, without the lowest `lift_m` of it.
Box3d body_box(const sim::Traffic& traffic, const sim::Actor& actor, double lift_m);

}  // namespace citysplat::cli
