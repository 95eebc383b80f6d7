#pragma once

#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "objects/object_points.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

/// A vehicle of three boxes whose surface is known, and what a spinning sensor sees of it.
namespace citysplat::test {

struct SolidBox {
    Vec3d min, max;
};

/// Bonnet, cabin and a box at the back: symmetric, with front and back that differ.
inline std::vector<SolidBox> van() {
    return {{{-2.3, -0.9, 0.3}, {2.3, 0.9, 0.95}},
            {{-1.4, -0.8, 0.95}, {1.0, 0.8, 1.55}},
            {{-2.3, -0.85, 0.95}, {-1.4, 0.85, 1.25}}};
}
inline ObjectSize van_size() { return {4.6, 1.8, 1.55}; }

inline std::optional<double> range_to(const std::vector<SolidBox>& boxes, Vec3d origin, Vec3d direction) {
    std::optional<double> nearest;
    for (const SolidBox& b : boxes) {
        double from = 0, to = 1e9;
        const double o[3] = {origin.x, origin.y, origin.z};
        const double d[3] = {direction.x, direction.y, direction.z};
        const double low[3] = {b.min.x, b.min.y, b.min.z}, high[3] = {b.max.x, b.max.y, b.max.z};
        for (int a = 0; a < 3; ++a) {
            const double t0 = (low[a] - o[a]) / d[a], t1 = (high[a] - o[a]) / d[a];
            from = std::max(from, std::min(t0, t1)), to = std::min(to, std::max(t0, t1));
        }
        if (from < to && from > 0 && (!nearest || from < *nearest)) nearest = from;
    }
    return nearest;
}

/// Distance of a place from the surface of the boxes together.
inline double distance_to(const std::vector<SolidBox>& boxes, Vec3d p) {
    double outside = 1e9, inside = -1e9;
    for (const SolidBox& b : boxes) {
        const Vec3d q{std::max({b.min.x - p.x, p.x - b.max.x}), std::max({b.min.y - p.y, p.y - b.max.y}),
                      std::max({b.min.z - p.z, p.z - b.max.z})};
        const double deepest = std::max({q.x, q.y, q.z});
        const Vec3d out{std::max(q.x, 0.0), std::max(q.y, 0.0), std::max(q.z, 0.0)};
        if (deepest > 0)
            outside = std::min(outside, length(out));
        else
            inside = std::max(inside, -deepest);
    }
    return inside > -1e9 ? inside : outside;
}

struct LookNoise {
    double range_m = 0.012;
    double box_m = 0.10, box_deg = 2;
    double step_deg = 0.25, beam_deg = 0.6;  ///< between the rays of the sensor
};

/// One look at the van from a place in its frame, as cut out by a box that errs.
inline objects::ObjectFrame look_from(Vec3d sensor, double time_s, std::uint64_t seed,
                                      const LookNoise& noise) {
    const std::uint64_t k = rng::key(seed, 77);
    std::uint64_t counter = 0;
    const auto gauss = [&] { return rng::gaussian(k, counter++); };
    // Where the true frame is, seen from the box.
    const Pose box_from_van{{noise.box_m * gauss(), noise.box_m * gauss(), noise.box_m * 0.3 * gauss()},
                            from_yaw_pitch_roll(noise.box_deg * exact::kRadPerDegree * gauss(), 0, 0)};
    objects::ObjectFrame frame;
    frame.time_s = time_s;
    const double middle = exact::atan2(-sensor.y, -sensor.x);
    for (double azimuth = -40; azimuth <= 40; azimuth += noise.step_deg)
        for (double elevation = -25; elevation <= 3; elevation += noise.beam_deg) {
            const auto a = exact::sin_cos(middle + azimuth * exact::kRadPerDegree);
            const auto e = exact::sin_cos(elevation * exact::kRadPerDegree);
            const Vec3d direction{a.cos * e.cos, a.sin * e.cos, e.sin};
            const auto range = range_to(van(), sensor, direction);
            if (!range) continue;
            const Vec3d p = sensor + direction * (*range + noise.range_m * gauss());
            objects::ObjectPoint point;
            point.place = objects::on_lattice(box_from_van.apply(p));
            point.to_sensor = rotate(box_from_van.rotation, sensor - p);
            point.time_s = time_s;
            point.intensity = static_cast<std::uint16_t>(p.z > 0.95 ? 30000 : 12000);
            frame.points.push_back(point);
        }
    std::sort(frame.points.begin(), frame.points.end(), objects::comes_before);
    return frame;
}

/// A van that is passed by on its left side, from behind to the front: its right side is never seen.
inline objects::ObjectCut passed_van(std::uint64_t seed, const LookNoise& noise = {}, int looks = 20) {
    objects::ObjectCut cut;
    cut.track = Track::along("van", Trajectory(std::vector<StampedPose>{{0, {}}, {2, {}}}));
    cut.track.class_name = "van";
    cut.track.size = van_size();
    for (int i = 0; i < looks; ++i) {
        const double x = -14 + 28.0 * i / (looks - 1);
        cut.frames.push_back(
            look_from({x, 5, 2.0}, 0.1 * i, rng::key(seed, static_cast<std::uint64_t>(i)), noise));
        cut.points += cut.frames.back().points.size();
    }
    return cut;
}

}  // namespace citysplat::test
