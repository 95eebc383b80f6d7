#include "sim/uav/fleet.hpp"

#include "sim/traffic/object_shape.hpp"

#include <algorithm>

namespace citysplat::sim {

namespace {

/// Poses that are older are not needed: no sweep is as long.
constexpr double kKept_s = 2;

/// From the middle of the bottom of its box, where tracks are, to the centre of mass.
Pose track_pose(const Pose& centre, const UavParameters& p) {
    return centre * Pose{{0, 0, -p.size_m.z / 2}, {}};
}

Box3d box_of(const UavParameters& p) {
    const Vec3d half = p.size_m * 0.5;
    return {-half, half};
}

}  // namespace

Fleet::Fleet(const TileSource& city, const trace::Tracer& tracer, const std::vector<FleetMember>& members,
             double time_s, const trace::CacheOptions& cache)
    : time_s_(time_s) {
    std::vector<Shape> shapes;
    std::vector<Actor> actors;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const FleetMember& m = members[i];
        const Vec3d size = m.parameters.size_m;
        ObjectDescription box;
        box.name = m.name;
        box.form = ObjectDescription::Form::box;
        box.size = {size.x, size.y, size.z};
        ObjectShape shape = make_object(box, city.classes());
        shapes.push_back(std::move(shape.shape));
        members_.push_back(std::make_unique<Member>(
            Member{m.name, Uav(m.parameters, m.start, time_s, m.run.seed + i), m.run, {}, {}, 0}));
        members_.back()->poses = members_.back()->uav.take_poses();
        Actor actor;
        actor.name = m.name;
        actor.shape = static_cast<std::uint32_t>(i);
        actor.object_from_shape = shape.object_from_shape;
        actor.instance = static_cast<std::uint16_t>(i + 1);
        actor.vehicle = static_cast<std::uint32_t>(i);
        actor.told = true;
        actor.track = Track::along(
            m.name, Trajectory({{time_s, track_pose(members_.back()->uav.state().pose(), m.parameters)}}));
        actors.push_back(std::move(actor));
    }
    traffic_ = Traffic(std::move(shapes), std::move(actors));
    SessionScene scene{city, tracer, cache, &traffic_};
    scene.clearance_bytes = cache.budget_bytes / 4;
    session_ = std::make_unique<Session>(scene);
    for (std::size_t i = 0; i < members_.size(); ++i)
        members_[i]->sensor =
            session_->add({members_[i]->run, members_[i]->way, static_cast<std::uint32_t>(i)});
    tell();
}

Fleet::~Fleet() = default;

void Fleet::advance_to(double time_s) {
    for (const auto& m : members_) {
        m->uav.advance_to(time_s);
        const std::vector<StampedPose> more = m->uav.take_poses();
        m->poses.insert(m->poses.end(), more.begin() + 1, more.end());
        const double oldest_s = m->uav.time_s() - kKept_s;
        const auto keep = std::find_if(m->poses.begin(), m->poses.end(),
                                       [&](const StampedPose& p) { return p.time_s >= oldest_s; });
        m->poses.erase(m->poses.begin(), keep);
        time_s_ = m->uav.time_s();
    }
    tell();
}

void Fleet::tell() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        Member& m = *members_[i];
        m.way = Trajectory(m.poses, m.name);
        std::vector<StampedPose> track = m.poses;
        for (StampedPose& pose : track)
            pose.world_from_body = track_pose(pose.world_from_body, m.uav.parameters());
        Track told = Track::along(m.name, Trajectory(std::move(track), m.name));
        told.begin_s = -std::numeric_limits<double>::infinity();
        told.end_s = std::numeric_limits<double>::infinity();
        traffic_.tell(static_cast<std::uint32_t>(i), std::move(told));
    }
}

Scan Fleet::scan(std::size_t i, double begin_s, const CancelToken& cancel) {
    return session_->scan(members_[i]->sensor, begin_s, cancel);
}

Clearance Fleet::clearance(std::size_t i, double limit_m) {
    const Uav& uav = members_[i]->uav;
    const Pose pose = uav.state().pose();
    return session_->clearance(ClearanceBody(box_of(uav.parameters())),
                               {pose, uav.time_s(), static_cast<std::uint32_t>(i)}, limit_m);
}

}  // namespace citysplat::sim
