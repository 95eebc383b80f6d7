#pragma once

#include "model/splat_tile.hpp"
#include "model/track.hpp"
#include "model/triangle_mesh.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace citysplat::sim {

/// What actors look like: triangles or discs, in the frame that Track tells. Any number of actors may share
/// one.
struct Shape {
    std::string name;
    std::variant<TriangleMesh, SplatTile> form;
};

/// Which vehicle an actor belongs to: that of no sensor.
inline constexpr std::uint32_t kNoVehicle = 0xffffffffu;

/// Something of the scenario that stands or moves by itself: an object, a vehicle, one picture of the
/// flip-book of a pedestrian.
struct Actor {
    std::string name;
    std::uint32_t shape = 0;     ///< number of its shape
    Track track;                 ///< where it is, and when it exists
    Pose object_from_shape;      ///< how the shape is put onto the object
    std::uint16_t label = 0;     ///< class of all its returns; 0: what the shape says
    std::uint16_t instance = 0;  ///< of its returns, at least 1; several actors may share one
    /// The vehicle whose body it is: its sensors do not meet the actor.
    std::uint32_t vehicle = kNoVehicle;
    bool seen_by_itself = false;  ///< they do
    /// Where it is becomes known as time goes by: Traffic::tell().
    bool told = false;
};

/// Everything that stands or moves in a scenario besides the city. Immutable but for tell(): safe to use from
/// several threads. An actor's number, its
/// place in `actors`, is part of what its returns are known by, so that actors are added at the end without
/// changing the returns of others.
class Traffic {
  public:
    Traffic() = default;
    /// Throws InputError naming the shape or actor: a mesh or track that does not pass its check(), a shape
    /// that does not exist or is empty, an instance of 0.
    Traffic(std::vector<Shape> shapes, std::vector<Actor> actors);

    bool empty() const { return actors_.empty(); }
    std::span<const Shape> shapes() const { return shapes_; }
    std::span<const Actor> actors() const { return actors_; }
    /// Those that are told where they are, in the order of their numbers.
    std::span<const std::uint32_t> told() const { return told_; }

    /// From now on the actor has this track. Requires a number of an actor; throws InputError when the track
    /// does not pass its check(). Not beside anything else.
    void tell(std::uint32_t actor, Track track);

  private:
    std::vector<Shape> shapes_;
    std::vector<Actor> actors_;
    std::vector<std::uint32_t> told_;
};

}  // namespace citysplat::sim
