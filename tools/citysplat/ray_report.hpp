#pragma once

#include "compare/ray_comparison.hpp"
#include "model/class_map.hpp"
#include "sim/recorded/beams.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace citysplat::cli {

/// What `compare --rays` found, in its JSON keys (docs/cli.md).
nlohmann::json ray_report_json(const compare::RayComparison& comparison, const sim::BeamTable& beams,
                               const ClassMap& classes);

/// The same as a table for people: all rays, by range, by class, by beam.
std::string ray_report_text(const compare::RayComparison& comparison, const sim::BeamTable& beams,
                            const ClassMap& classes);

/// What a learned model of the sensor makes of the rays that did not come back, and what it costs.
nlohmann::json model_report_json(const compare::RayTally& with_model);
/// `what` loses returns: "the model of the sensor", say.
std::string model_report_text(const compare::RayTally& with_model, const std::string& what);

/// What a user should know before believing the report.
std::vector<std::string> ray_warnings(std::uint64_t points_without_sensor, bool beams_missing);

}  // namespace citysplat::cli
