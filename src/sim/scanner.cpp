#include "sim/scanner.hpp"

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

ScanRays::ScanRays(const SensorRun& run, const Trajectory& trajectory, std::uint64_t index, double time_s,
                   std::span<const Firing> firings)
    : index_(index),
      time_s_(time_s),
      firings_(firings),
      t_min_(static_cast<float>(run.sensor.min_range_m)),
      t_max_(static_cast<float>(run.sensor.max_range_m)) {
    const double sweep_s = sweep_seconds(run.sensor);
    keys_per_second_ = sweep_s > 0 ? static_cast<float>(kKeys / sweep_s) : 0.0f;
    keys_.reserve(kKeys + 1);
    for (int k = 0; k <= kKeys; ++k) {
        const double t = std::min(time_s + sweep_s * k / kKeys, trajectory.end_s());
        const auto body = trajectory.at(t);
        assert(body);
        const Pose pose = *body * run.body_from_sensor;
        if (k == 0) first_pose_ = pose;
        const Vec3d x = rotate(pose.rotation, {1, 0, 0}), y = rotate(pose.rotation, {0, 1, 0}),
                    z = rotate(pose.rotation, {0, 0, 1}), o = pose.translation;
        keys_.push_back({{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}, o});
        if (k == 0) origins_ = {o, o};
        origins_.min = {std::min(origins_.min.x, o.x), std::min(origins_.min.y, o.y),
                        std::min(origins_.min.z, o.z)};
        origins_.max = {std::max(origins_.max.x, o.x), std::max(origins_.max.y, o.y),
                        std::max(origins_.max.z, o.z)};
    }
}

void ScanRays::generate(std::size_t first, std::span<Ray> rays) const {
    float known_time = -1;
    Key at{};
    for (std::size_t i = 0; i < rays.size(); ++i) {
        const Firing& firing = firings_[first + i];
        if (firing.time_s != known_time) {
            known_time = firing.time_s;
            const float place = firing.time_s * keys_per_second_;
            const auto k = std::min(static_cast<std::size_t>(place), static_cast<std::size_t>(kKeys - 1));
            const double s = static_cast<double>(place - static_cast<float>(k));
            const Key &a = keys_[k], &b = keys_[k + 1];
            for (int j = 0; j < 9; ++j) at.r[j] = a.r[j] + s * (b.r[j] - a.r[j]);
            at.t = a.t + s * (b.t - a.t);
        }
        const Vec3d d = vec_cast<double>(firing.direction);
        rays[i] = {at.t,
                   {static_cast<float>(at.r[0] * d.x + at.r[1] * d.y + at.r[2] * d.z),
                    static_cast<float>(at.r[3] * d.x + at.r[4] * d.y + at.r[5] * d.z),
                    static_cast<float>(at.r[6] * d.x + at.r[7] * d.y + at.r[8] * d.z)},
                   t_min_,
                   t_max_};
    }
}

ReturnMaker::ReturnMaker(const SensorRun& run)
    : run_(run), min_cosine_(exact::cos(run.sensor.drop.max_incidence_deg * (exact::kPi / 180))) {
    if (run.sensor.drop.max_incidence_deg >= 90) min_cosine_ = 0;
}

Return ReturnMaker::make(const Ray& ray, const Firing& firing, const HitList& list,
                         std::uint64_t scan) const {
    const std::uint32_t n = surface_depth(list, run_.hits, run_.gap_m);
    if (n == 0) return finish(ray, firing, Hit{}, 0, 0, scan);
    return finish(ray, firing, list.hits[0], weighted_range(list, n), n, scan);
}

Return ReturnMaker::make(const Ray& ray, const Firing& firing, const Hit& hit, std::uint64_t scan) const {
    return finish(ray, firing, hit, hit.range_m, hit.exists() ? 1 : 0, scan);
}

Return ReturnMaker::finish(const Ray& ray, const Firing& firing, const Hit& hit, double range_m,
                           std::uint32_t hits, std::uint64_t scan) const {
    Return r{};
    r.time_s = firing.time_s;
    r.beam = static_cast<std::uint16_t>(firing.beam);
    r.tile = hit.tile;
    r.splat = hit.splat;
    const Vec3d direction = vec_cast<double>(ray.direction);
    if (hits == 0) {
        r.range_m = ray.t_max;
        r.position = ray.origin + direction * static_cast<double>(ray.t_max);
        return r;
    }
    const Vec3f normal = unpack_normal(hit.normal);
    const float along = dot(normal, ray.direction);
    r.normal = along > 0 ? -normal : normal;
    r.cosine = std::min(std::fabs(along), 1.0f);
    r.label = hit.label;
    r.hits = static_cast<std::uint8_t>(hits);
    r.status = RayStatus::hit;
    const double cosine = static_cast<double>(r.cosine);
    r.intensity = measured_intensity(hit, cosine, run_.sensor.intensity);
    if (run_.noise) {
        const DropModel& drop = run_.sensor.drop;
        if (is_dropped(cosine, drop.probability, min_cosine_, scan, firing.ray))
            r.status = RayStatus::dropped;
        range_m = measured_range(range_m, run_.sensor.error, scan, firing.ray);
    }
    r.range_m = static_cast<float>(range_m);
    r.position = ray.origin + direction * range_m;
    return r;
}

}  // namespace citysplat::sim
