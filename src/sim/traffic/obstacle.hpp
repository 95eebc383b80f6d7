#pragma once

#include "core/math/box.hpp"
#include "core/words.hpp"
#include "model/track.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::sim {

/// Obstacles of one kind that fill a region of the air (MARSIM §IV-D). Where number i is at a time is a
/// function of (seed, number, time) alone: no step size, order or earlier question changes it.
struct ObstacleField {
    enum class Motion { constant_velocity, free_fall, random_walk };
    static constexpr Words<Motion, 3> kMotions{{"constant-velocity", "free-fall", "random-walk"}};

    Motion motion = Motion::constant_velocity;
    std::uint64_t seed = 1;
    std::uint32_t count = 1;
    Box3d region{{0, 0, 0}, {0, 0, 0}};       ///< of their origins
    double slowest_m_s = 1, fastest_m_s = 1;  ///< of constant velocity and random walk
    double leg_s = 0.1;                       ///< a random walk changes its direction this often
    double start_s = 0;                       ///< when they begin; before it they are not there
};

/// Where obstacle `number` is. Requires time_s >= start_s and number < count.
///
/// constant_velocity: from a random place in a random direction; who leaves the region at one face enters at
/// the opposite one. free_fall: from a random place of the upper face, without speed, under 9.81 m/s²; who
/// arrives at the lower face begins again at another place. random_walk: straight legs in random directions,
/// each of a random speed; the walls of the region reflect its ends.
Vec3d obstacle_position(const ObstacleField& field, std::uint32_t number, double time_s);

/// The tracks of obstacle `number` from begin_s to end_s: one for each time that it comes back. Between their
/// poses the position is linear, exactly or within 0.2 mm.
std::vector<Track> obstacle_tracks(const ObstacleField& field, std::uint32_t number, double begin_s,
                                   double end_s);

/// At least as many poses as the tracks of one obstacle have; of a random walk those since it began, which
/// must be walked.
double most_poses(const ObstacleField& field, double begin_s, double end_s);

}  // namespace citysplat::sim
