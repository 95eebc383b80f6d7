#include "citysplat/simulating/bagged_sensors.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::cli {

std::map<std::filesystem::path, PoseSpline> smooth_ways(Context& context, double step_s,
                                                        std::map<std::filesystem::path, Trajectory>& ways) {
    std::map<std::filesystem::path, PoseSpline> splines;
    if (step_s == 0) return splines;
    for (auto& [path, way] : ways) {
        if (way.poses().size() < 2) throw UsageError("--smooth: " + path.string() + " has only one pose");
        const PoseSpline& spline = splines.emplace(path, PoseSpline(way, step_s)).first->second;
        double off_m = 0;
        for (const StampedPose& pose : way.poses())
            off_m = std::max(
                off_m, length(spline.at(pose.time_s).pose.translation - pose.world_from_body.translation));
        context.say(path.string() + ": the smooth path is at most " +
                    format_number(std::ceil(off_m * 1e4) / 1e4) + " m from the poses");
        way = spline.sampled();
    }
    return splines;
}

std::string name_of(const sim::ScenarioSensor& sensor) {
    return sensor.name.empty() ? sensor.run.sensor.id : sensor.name;
}

std::vector<sim::BagSensor> bag_sensors(const sim::Scenario& scenario,
                                        const std::map<std::filesystem::path, Trajectory>& ways,
                                        const std::map<std::filesystem::path, PoseSpline>& splines) {
    std::vector<sim::BagSensor> sensors;
    for (const sim::ScenarioSensor& sensor : scenario.sensors) {
        if (!goes_into_bag(sensor)) continue;
        const auto spline = splines.find(scenario.trajectory_of(sensor));
        const bool on_vehicle = sensor.vehicle != sim::kNoVehicle;
        sensors.push_back({name_of(sensor), on_vehicle ? scenario.things.vehicles[sensor.vehicle].name : "",
                           sensor.run, ways.at(scenario.trajectory_of(sensor)), sensor.schedule,
                           spline == splines.end() ? nullptr : &spline->second, sensor.output});
        sim::BagWriter::check(sensors.back());
    }
    return sensors;
}

}  // namespace citysplat::cli
