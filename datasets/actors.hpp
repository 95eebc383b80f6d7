#pragma once

#include "datasets/block.hpp"

#include <cstdint>
#include <optional>
#include <vector>

/// Everything that moves: cars in the lanes, people on the sidewalks. Where each one is at a time is a closed
/// formula, so that the truth can be asked about any moment.
namespace citysplat::synth {

/// Somebody at one moment.
struct Actor {
    Vec3d position;  ///< on the ground, city coordinates
    double cos_yaw, sin_yaw;
    Vec3d centre;  ///< of a sphere around it
    double radius;
    const Geometry* shape;  ///< x forward, y left, z up from `position`
};

struct ActorHit {
    Encounter encounter;
    Look look;
};

class Actors {
  public:
    explicit Actors(std::uint64_t seed);

    /// Everybody within `reach_m` of (x, y) at a time, except those who would be in the survey vehicle's way:
    /// within kClearance_m of (x, y).
    void near(double x, double y, double reach_m, double time_s, std::vector<Actor>& out) const;
    static constexpr double kClearance_m = 6.5;

    static std::optional<ActorHit> intersect(const std::vector<Actor>& actors, const Ray& ray, double t_max);
    /// Distance to the nearest surface of an actor; nothing when there is none within d_max.
    static std::optional<GeometryNearest> nearest(const std::vector<Actor>& actors, Vec3d p, double d_max);

  private:
    struct Stream;
    void walk(const Stream& stream, double x, double y, double reach_m, double time_s, Ground& ground,
              std::vector<Actor>& out) const;

    std::uint64_t seed_;
    std::vector<Geometry> vehicles_;
    std::vector<std::vector<Geometry>> people_;  ///< by person, by phase of the step
};

}  // namespace citysplat::synth
