#pragma once

#include "core/cancel.hpp"
#include "sim/traffic/object_shelf.hpp"
#include "sim/traffic/played_frames.hpp"
#include "sim/traffic/scenario_things.hpp"
#include "sim/traffic/traffic.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace citysplat::sim {

/// Which part of the world and of time a run looks at. What is elsewhere need not be read.
struct TrafficSpan {
    double begin_s, end_s;
    Box3d region;  ///< in x and y: the way of all sensors and what they can reach
    /// From where things are seen: objects of a bank are chosen by it. May be empty.
    struct Way {
        const Trajectory* trajectory;
        double reach_m;
    };
    std::vector<Way> ways{};
    double sweep_s = 0;  ///< what is looked at last begins at `end_s` at the latest, and lasts so long
};

/// What the table of objects says about an actor.
struct ActorRow {
    std::string class_name, object;
    ObjectSize size;
};

/// What it says about an instance of recorded frames, which has neither box nor track.
struct FrameRow {
    std::uint16_t instance;
    std::string class_name, object;
};

/// The actors of a scenario on the way to be a Traffic: their tracks are read, but may have to be put on the
/// ground.
struct TrafficPlan {
    std::vector<Shape> shapes;
    std::vector<Actor> actors;
    std::vector<ActorRow> rows;     ///< one for each actor
    std::vector<bool> on_ground;    ///< one for each actor
    std::vector<FramePlay> frames;  ///< of [[snapshots]]
    std::vector<FrameRow> frame_rows;
    std::vector<std::string> notes;  ///< what was left out or assumed, for people
};

/// Reads the files that the scenario names and makes its actors: those of [[actor]] first, then vehicles,
/// traffic and obstacles, each in the order of the file; then the frames of [[snapshots]]. Instances that
/// nobody chose are counted up from 1. Throws InputError or ConfigError naming file or table.
TrafficPlan plan_traffic(const ScenarioThings& things, const TrafficSources& sources, const TrafficSpan& span,
                         const CancelToken& cancel);

}  // namespace citysplat::sim
