#pragma once

#include "citysplat/context.hpp"
#include "model/spline/pose_spline.hpp"
#include "sim/bag/bag_writer.hpp"
#include "sim/drive/scenario.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace citysplat::cli {

/// Splines of all ways, which become samples of them; none when `step_s` is 0. Says how far they are from the
/// poses.
std::map<std::filesystem::path, PoseSpline> smooth_ways(Context& context, double step_s,
                                                        std::map<std::filesystem::path, Trajectory>& ways);

/// What a sensor is called in reports and bags.
std::string name_of(const sim::ScenarioSensor& sensor);

inline bool goes_into_bag(const sim::ScenarioSensor& sensor) { return sensor.output.format == "rosbag2"; }

/// The sensors of a scenario whose scans share a bag. Throws UsageError for one that cannot.
std::vector<sim::BagSensor> bag_sensors(const sim::Scenario& scenario,
                                        const std::map<std::filesystem::path, Trajectory>& ways,
                                        const std::map<std::filesystem::path, PoseSpline>& splines);

}  // namespace citysplat::cli
