#include "sim/traffic/ground.hpp"

#include "core/bytes.hpp"
#include "core/math/math_hd.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::sim {

namespace {

constexpr double kStep_m = 1;
/// Where the wheels are, as parts of half the length and half the width.
constexpr double kAxle = 0.6, kWheel = 0.8;
/// A track's own height is good to this.
constexpr double kAbove_m = 2, kBelow_m = 20;
/// How many surfaces of other classes a ray may pass.
constexpr int kMostTries = 6;

bool is_ground(const ClassMap& classes, std::uint16_t label) {
    return classes.at(label).group == SplatGroup::ground;
}

bool knows_ground(const ClassMap& classes) {
    return std::any_of(classes.classes().begin(), classes.classes().end(),
                       [](const auto& entry) { return entry.second.group == SplatGroup::ground; });
}

/// Every metre of a track, so that it follows the road between two boxes.
std::vector<StampedPose> dense_path(const Trajectory& path) {
    std::vector<StampedPose> dense;
    const auto poses = path.poses();
    for (std::size_t i = 0; i < poses.size(); ++i) {
        dense.push_back(poses[i]);
        if (i + 1 == poses.size()) break;
        const double way =
            length(poses[i + 1].world_from_body.translation - poses[i].world_from_body.translation);
        const double span_s = poses[i + 1].time_s - poses[i].time_s;
        const int steps = static_cast<int>(std::min(1000.0, std::ceil(way / kStep_m)));
        for (int k = 1; k < steps; ++k) {
            const double time_s = poses[i].time_s + span_s * k / steps;
            if (time_s > dense.back().time_s && time_s < poses[i + 1].time_s)
                dense.push_back({time_s, *path.at(time_s)});
        }
    }
    return dense;
}

double yaw_of(const Quaternion& q) {
    const Vec3d x = rotate(q, {1, 0, 0});
    return exact::atan2(x.y, x.x);
}

struct Wheels {
    double z[4];  ///< front left, front right, rear left, rear right; NaN: nothing there
    bool all() const { return std::isfinite(z[0] + z[1] + z[2] + z[3]); }
};

class GroundFinder {
  public:
    GroundFinder(const ClassMap& classes, double lowest_m, double highest_m, const CastAtCity& cast)
        : classes_(classes),
          lowest_m_(lowest_m),
          highest_m_(highest_m),
          cast_(cast),
          by_class_(knows_ground(classes)) {}

    /// Height of the ground at places with a height that is nearly right, or with none.
    std::vector<double> heights(const std::vector<Vec3d>& places, bool upwards) {
        std::vector<double> found(places.size(), NAN);
        std::vector<trace::Ray> rays;
        std::vector<std::size_t> which;
        const float sign = upwards ? 1.0f : -1.0f;
        for (std::size_t i = 0; i < places.size(); ++i) {
            const double from = upwards ? lowest_m_ - 1 : places[i].z + kAbove_m;
            const double reach = upwards ? highest_m_ - lowest_m_ + 2 : kAbove_m + kBelow_m;
            trace::Ray ray{};
            ray.origin = {places[i].x, places[i].y, from};
            ray.direction = {0, 0, sign};
            ray.t_min = 0;
            ray.t_max = static_cast<float>(std::min(reach, static_cast<double>(trace::kMaxRange_m)));
            rays.push_back(ray);
            which.push_back(i);
        }
        for (int attempt = 0; attempt < kMostTries && !rays.empty(); ++attempt) {
            std::vector<trace::Hit> hits(rays.size());
            cast_(rays, hits);
            std::size_t left = 0;
            for (std::size_t k = 0; k < rays.size(); ++k) {
                if (!hits[k].exists()) continue;
                if (!by_class_ || is_ground(classes_, hits[k].label)) {
                    found[which[k]] = rays[k].origin.z + static_cast<double>(sign) * hits[k].range_m;
                    continue;
                }
                rays[left] = rays[k];
                which[left] = which[k];
                rays[left++].t_min = hits[k].t + 0.02f;
            }
            rays.resize(left);
            which.resize(left);
        }
        return found;
    }

  private:
    const ClassMap& classes_;
    double lowest_m_, highest_m_;
    const CastAtCity& cast_;
    bool by_class_;
};

/// Heights of places without ground are those of the nearest place along the track that has some.
void fill_gaps(std::vector<Wheels>& wheels) {
    for (std::size_t w = 0; w < 4; ++w) {
        std::vector<double> before(wheels.size(), NAN);
        double last = NAN;
        for (std::size_t i = 0; i < wheels.size(); ++i) {
            if (std::isfinite(wheels[i].z[w])) last = wheels[i].z[w];
            before[i] = last;
        }
        last = NAN;
        for (std::size_t i = wheels.size(); i-- > 0;) {
            if (std::isfinite(wheels[i].z[w])) last = wheels[i].z[w];
            if (!std::isfinite(wheels[i].z[w])) wheels[i].z[w] = std::isfinite(before[i]) ? before[i] : last;
        }
    }
}

/// Of one track. True when there was ground under some of it.
bool stand(Track& track, const ObjectSize& size, GroundFinder& ground, std::uint64_t (&counts)[2]) {
    std::vector<StampedPose> path = dense_path(track.path);
    const bool flat = std::all_of(path.begin(), path.end(), [&](const StampedPose& p) {
        return p.world_from_body.translation.z == path.front().world_from_body.translation.z;
    });
    const double ahead = kAxle * size.length_m / 2, aside = kWheel * size.width_m / 2;
    std::vector<Vec3d> places;
    for (const StampedPose& p : path) {
        const auto a = exact::sin_cos(yaw_of(p.world_from_body.rotation));
        for (const auto& [x, y] :
             {std::pair{ahead, aside}, {ahead, -aside}, {-ahead, aside}, {-ahead, -aside}})
            places.push_back(p.world_from_body.translation +
                             Vec3d{a.cos * x - a.sin * y, a.sin * x + a.cos * y, 0});
    }
    // Without a height of its own a track may still have a right one: all of a flat road.
    std::vector<double> z = ground.heights(places, flat);
    std::vector<Wheels> wheels(path.size());
    bool any = false;
    for (std::size_t i = 0; i < z.size(); ++i) {
        wheels[i / 4].z[i % 4] = z[i];
        ++counts[0];
        if (std::isfinite(z[i]))
            any = true;
        else
            ++counts[1];
    }
    if (!any) return false;
    fill_gaps(wheels);
    for (std::size_t i = 0; i < path.size(); ++i) {
        Wheels& w = wheels[i];
        // A side that never had ground takes the height of the others.
        double sum = 0;
        int n = 0;
        for (const double v : w.z)
            if (std::isfinite(v)) sum += v, ++n;
        for (double& v : w.z)
            if (!std::isfinite(v)) v = sum / n;
        Pose& pose = path[i].world_from_body;
        pose.translation.z = (w.z[0] + w.z[1] + w.z[2] + w.z[3]) / 4;
        const double rise = (w.z[0] + w.z[1] - w.z[2] - w.z[3]) / 2,
                     lean = (w.z[0] + w.z[2] - w.z[1] - w.z[3]) / 2;
        const double pitch = ahead > 0 ? -exact::atan2(rise, 2 * ahead) : 0;
        const double roll = aside > 0 ? exact::atan2(lean, 2 * aside) : 0;
        pose.rotation = from_yaw_pitch_roll(yaw_of(pose.rotation), pitch, roll);
    }
    const double begin_s = track.begin_s, end_s = track.end_s;
    track.path = Trajectory(std::move(path), track.name);
    track.begin_s = begin_s, track.end_s = end_s;
    return true;
}

}  // namespace

void stand_on_city(TrafficPlan& plan, const ClassMap& classes, double lowest_m, double highest_m,
                   const CastAtCity& cast) {
    GroundFinder ground(classes, lowest_m, highest_m, cast);
    std::uint64_t counts[2]{0, 0}, nowhere = 0;
    for (std::size_t i = 0; i < plan.actors.size(); ++i) {
        if (!plan.on_ground[i]) continue;
        Track& track = plan.actors[i].track;
        const ObjectSize& size = track.size.length_m > 0 ? track.size : plan.rows[i].size;
        if (!stand(track, size, ground, counts)) ++nowhere;
    }
    if (counts[1])
        plan.notes.push_back(
            "ground = \"city\": " + format_count(counts[1]) + " of " + format_count(counts[0]) +
            " wheels have no scanned ground below them and take the height of their neighbours");
    if (nowhere)
        plan.notes.push_back("ground = \"city\": " + format_count(nowhere) +
                             " tracks are nowhere above scanned ground and keep their heights");
}

}  // namespace citysplat::sim
