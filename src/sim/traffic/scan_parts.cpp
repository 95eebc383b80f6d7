#include "sim/traffic/scan_parts.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::sim {

namespace {

/// Poses of a track under one box.
constexpr std::size_t kPosesPerStay = 8;
/// Stays under one end time.
constexpr std::size_t kBlock = 64;

double reach_of(const TriangleMesh& mesh) {
    double most = 0;
    for (const Vec3f v : mesh.vertices) most = std::max(most, length(vec_cast<double>(v)));
    return most;
}
double reach_of(const SplatTile& tile) {
    double most = 0;
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const Disc disc = tile.disc(i);
        most = std::max(most, length(vec_cast<double>(disc.centre)) + static_cast<double>(disc.radius));
    }
    return most;
}

}  // namespace

double distance_between(const Box3d& a, const Box3d& b) {
    const auto gap = [](double a_min, double a_max, double b_min, double b_max) {
        return std::max({0.0, b_min - a_max, a_min - b_max});
    };
    return length(Vec3d{gap(a.min.x, a.max.x, b.min.x, b.max.x), gap(a.min.y, a.max.y, b.min.y, b.max.y),
                        gap(a.min.z, a.max.z, b.min.z, b.max.z)});
}

void ScanParts::add_standing(const trace::PoseKey& world_from_shape, trace::Part part) {
    // Keys stay where they are when the list of motions grows: they are in vectors of their own.
    part.motion = motions_.emplace_back(MotionKeys{{world_from_shape}, {0}}).view();
    parts_.push_back(part);
}

ReadyTraffic::ReadyTraffic(const Traffic& traffic, const trace::Tracer& tracer)
    : traffic_(traffic), shapes_(traffic.shapes().size()), reach_m_(traffic.shapes().size()) {
    const auto actors = traffic.actors();
    for (std::uint32_t i = 0; i < actors.size(); ++i) {
        const std::uint32_t shape = actors[i].shape;
        if (!shapes_[shape]) {
            std::visit(
                [&](const auto& form) {
                    shapes_[shape] = tracer.load(form);
                    reach_m_[shape] = reach_of(form);
                },
                traffic.shapes()[shape].form);
            bytes_ += shapes_[shape]->bytes();
        }
        add_stays(i);
    }
    std::stable_sort(stays_.begin(), stays_.end(),
                     [](const Stay& a, const Stay& b) { return a.begin_s < b.begin_s; });
    for (std::size_t first = 0; first < stays_.size(); first += kBlock) {
        double last = stays_[first].end_s;
        for (std::size_t i = first; i < std::min(first + kBlock, stays_.size()); ++i)
            last = std::max(last, stays_[i].end_s);
        last_end_.push_back(last);
    }
}

double ReadyTraffic::margin_of(const Actor& actor) const {
    // The metre is for rounding.
    return reach_m_[actor.shape] + length(actor.object_from_shape.translation) + 1;
}

void ReadyTraffic::add_stays(std::uint32_t number) {
    const Actor& actor = traffic_.actors()[number];
    const auto poses = actor.track.path.poses();
    const double reach_m = margin_of(actor);
    for (std::size_t first = 0; first < poses.size(); first += kPosesPerStay) {
        const std::size_t last = std::min(first + kPosesPerStay, poses.size() - 1);
        Stay stay{poses[first].time_s, poses[last].time_s, kEmptyBox, number};
        for (std::size_t i = first; i <= last; ++i) stay.box.grow(poses[i].world_from_body.translation);
        stay.box = stay.box.widened(reach_m);
        // Outside of its poses an actor stands.
        if (first == 0) stay.begin_s = actor.track.begin_s;
        if (last + 1 == poses.size()) stay.end_s = actor.track.end_s;
        stay.begin_s = std::max(stay.begin_s, actor.track.begin_s);
        stay.end_s = std::min(stay.end_s, actor.track.end_s);
        if (stay.begin_s <= stay.end_s) stays_.push_back(stay);
    }
}

ReadyTraffic::Stay ReadyTraffic::told_stay(std::uint32_t number, const Sweep& sweep) const {
    const Actor& actor = traffic_.actors()[number];
    const Track& track = actor.track;
    const double end_s = sweep.begin_s + sweep.seconds;
    Stay stay{track.begin_s, track.end_s, kEmptyBox, number};
    stay.box.grow(track.pose_at(sweep.begin_s).translation);
    stay.box.grow(track.pose_at(end_s).translation);
    const auto poses = track.path.poses();
    auto next = std::upper_bound(poses.begin(), poses.end(), sweep.begin_s,
                                 [](double t, const StampedPose& pose) { return t < pose.time_s; });
    for (; next != poses.end() && next->time_s < end_s; ++next)
        stay.box.grow(next->world_from_body.translation);
    stay.box = stay.box.widened(margin_of(actor));
    return stay;
}

template <class F>
void ReadyTraffic::visit(const Sweep& sweep, const F& f) const {
    const double end_s = sweep.begin_s + sweep.seconds;
    for (const std::uint32_t actor : traffic_.told()) {
        const Stay stay = told_stay(actor, sweep);
        if (stay.begin_s <= end_s && stay.end_s >= sweep.begin_s) f(stay);
    }
    for (std::size_t block = 0; block < last_end_.size(); ++block) {
        const std::size_t first = block * kBlock;
        if (stays_[first].begin_s > end_s) break;
        if (last_end_[block] < sweep.begin_s) continue;
        for (std::size_t i = first; i < std::min(first + kBlock, stays_.size()); ++i)
            if (stays_[i].begin_s <= end_s && stays_[i].end_s >= sweep.begin_s &&
                !traffic_.actors()[stays_[i].actor].told)
                f(stays_[i]);
    }
}

ScanParts ReadyTraffic::during(const Sweep& sweep, const ScanReach& reach) const {
    std::vector<std::uint32_t> found;
    visit(sweep, [&](const Stay& stay) {
        const Actor& actor = traffic_.actors()[stay.actor];
        if (actor.vehicle != kNoVehicle && actor.vehicle == reach.vehicle && !actor.seen_by_itself) return;
        if (distance_between(stay.box, reach.path) <= reach.range_m) found.push_back(stay.actor);
    });
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());

    ScanParts scan;
    scan.motions_.reserve(found.size());
    scan.parts_.reserve(found.size());
    for (const std::uint32_t number : found) {
        const Actor& actor = traffic_.actors()[number];
        scan.motions_.push_back(
            motion_during(actor.track, actor.object_from_shape, reach_m_[actor.shape], sweep));
        trace::Part part;
        part.shape = shapes_[actor.shape].get();
        part.motion = scan.motions_.back().view();
        part.from_s = static_cast<float>(actor.track.begin_s - sweep.begin_s);
        part.to_s = static_cast<float>(actor.track.end_s - sweep.begin_s);
        part.facts = {trace::kFirstPart + number, actor.label, actor.instance};
        scan.parts_.push_back(part);
    }
    return scan;
}

}  // namespace citysplat::sim
