#include "sim/scan/scanner.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace citysplat::sim {

double sweep_seconds(const Sensor& sensor) {
    if (std::holds_alternative<PinholePattern>(sensor.rays)) return 0;
    if (const auto* head = std::get_if<SpinningHead>(&sensor.rays))
        return head->pattern.columns * head->pattern.column_time_s;
    return 1 / sensor.scan_hz;
}

Pose pose_of_key(const SensorRun& run, const Trajectory& trajectory, double time_s, std::uint32_t key) {
    const double t = std::min(time_s + sweep_seconds(run.sensor) * key / kPoseKeys, trajectory.end_s());
    const auto body = trajectory.at(t);
    assert(body);
    return *body * run.body_from_sensor;
}

ScanRays::ScanRays(const SensorRun& run, const Trajectory& trajectory, std::uint64_t index, double time_s,
                   const FiringPlan& firings) {
    const double sweep_s = sweep_seconds(run.sensor);
    view_ = {firings,
             nullptr,
             sweep_s > 0 ? static_cast<float>(kPoseKeys / sweep_s) : 0.0f,
             static_cast<float>(run.sensor.min_range_m),
             static_cast<float>(run.sensor.max_range_m),
             0,
             scan_key(run.seed, run.stream, index),
             return_model(run)};
    keys_.reserve(kPoseKeys + 1);
    for (std::uint32_t k = 0; k <= kPoseKeys; ++k) {
        const Pose pose = pose_of_key(run, trajectory, time_s, k);
        if (k == 0) first_pose_ = pose;
        const Vec3d x = rotate(pose.rotation, {1, 0, 0}), y = rotate(pose.rotation, {0, 1, 0}),
                    z = rotate(pose.rotation, {0, 0, 1}), o = pose.translation;
        keys_.push_back({{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}, o});
    }
}

Box3d ScanRays::path() const {
    Box3d path = kEmptyBox;
    for (const PoseKey& key : keys_) path.grow(key.t);
    return path;
}

ScanView ScanRays::view() const {
    ScanView view = view_;
    view.keys = keys_.data();
    return view;
}

namespace {

BeamModel beam_model(const BeamShape& beam) {
    if (beam.returns == ReturnMode::line) return {};
    const exact::SinCos half = exact::sin_cos(beam.divergence_rad / 2);
    return {beam.returns, beam.rays, static_cast<float>(half.sin / half.cos),
            static_cast<float>(beam.resolution_m)};
}

}  // namespace

ReturnModel return_model(const SensorRun& run) {
    const DropModel& drop = run.sensor.drop;
    ReturnModel model;
    model.error = run.sensor.error;
    model.intensity = run.sensor.intensity;
    model.drop_probability = drop.probability;
    model.min_cosine =
        drop.max_incidence_deg >= 90 ? 0 : exact::cos(drop.max_incidence_deg * exact::kRadPerDegree);
    model.depth = std::clamp(run.hits, 1u, static_cast<std::uint32_t>(trace::kMaxHits));
    model.gap_m = run.gap_m;
    model.noise = run.noise ? 1 : 0;
    model.beam = beam_model(run.sensor.beam);
    return model;
}

}  // namespace citysplat::sim
