#pragma once

#include "core/math/box.hpp"
#include "sim/traffic/motion.hpp"
#include "sim/traffic/traffic.hpp"
#include "trace/tracer.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::sim {

/// The parts that the rays of one scan can meet, with the keys of their motions.
class ScanParts {
  public:
    std::span<const trace::Part> parts() const { return parts_; }
    /// A part that does not move; its `motion` is set here.
    void add_standing(const trace::PoseKey& world_from_shape, trace::Part part);

  private:
    friend class ReadyTraffic;
    std::vector<MotionKeys> motions_;
    std::vector<trace::Part> parts_;
};

/// 0 when they touch.
double distance_between(const Box3d& a, const Box3d& b);

/// What a scan can see: where its rays begin, how far they go, and the vehicle that they do not see.
struct ScanReach {
    Box3d path;
    double range_m;
    std::uint32_t vehicle = kNoVehicle;
};

/// Traffic made ready for a tracer: its shapes are loaded, and who is where is found quickly. Immutable: safe
/// to use from several threads. The traffic must outlive it, and may be told more between two questions.
class ReadyTraffic {
  public:
    /// Throws as Tracer::load() does.
    ReadyTraffic(const Traffic& traffic, const trace::Tracer& tracer);

    /// Memory of the shapes.
    std::uint64_t bytes() const { return bytes_; }

    /// The actors that rays can meet during a sweep, in the order of their numbers. Actors that cannot be met
    /// cost nothing but their place in a search tree.
    ScanParts during(const Sweep& sweep, const ScanReach& reach) const;

  private:
    /// An actor is somewhere in `box` from `begin_s` to `end_s`.
    struct Stay {
        double begin_s, end_s;
        Box3d box;
        std::uint32_t actor;
    };
    /// No point of the actor is farther from where its track says.
    double margin_of(const Actor& actor) const;
    void add_stays(std::uint32_t actor);
    /// Where an actor that is told is during a sweep.
    Stay told_stay(std::uint32_t actor, const Sweep& sweep) const;
    /// Calls f(stay) for those that overlap the time.
    template <class F>
    void visit(const Sweep& sweep, const F& f) const;

    const Traffic& traffic_;
    std::vector<trace::TracerTilePtr> shapes_;  ///< by number; nullptr: no actor has it
    std::vector<double> reach_m_;               ///< of the shapes: their farthest point from the origin
    std::uint64_t bytes_ = 0;
    std::vector<Stay> stays_;       ///< by begin_s
    std::vector<double> last_end_;  ///< of blocks of stays: those that are over are passed over together
};

}  // namespace citysplat::sim
