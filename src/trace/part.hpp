#pragma once

#include "core/math/box.hpp"
#include "trace/part_hd.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

/// What stands or moves in a scene besides the tiles of the city.
namespace citysplat::trace {

class TracerTile;
class TileSet;

/// A shape, which any number of parts may share, and how it moves while a scan is taken. Every ray meets the
/// part where it is at the ray's own time (Ray::time_s): the ray is moved into the part's frame, and meets
/// there what never moves.
///
/// The frame of a shape made of a tile is that of the tile, whose origin in the world does not matter here. A
/// part with `id` 0 that stands, unturned, at this origin gives the hits of the tile, bit for bit.
struct Part {
    const TracerTile* shape = nullptr;  ///< of the tracer that is asked; must outlive the part
    MotionView motion;                  ///< world_from_shape
    /// The part is there for rays of the times [from_s, to_s).
    float from_s = -std::numeric_limits<float>::infinity();
    float to_s = std::numeric_limits<float>::infinity();
    /// Different parts that a ray can meet have different ids.
    PartFacts facts;

    bool exists(float time_s) const { return time_s >= from_s && time_s < to_s; }
};

/// Everything that rays can meet: tiles and parts. Which of them comes first, and where a part stands in the
/// list, changes nothing.
struct Scene {
    const TileSet& tiles;
    std::span<const Part> parts = {};

    // NOLINTNEXTLINE(google-explicit-constructor): tiles alone are a scene.
    Scene(const TileSet& some) : tiles(some) {}
    Scene(const TileSet& some, std::span<const Part> others) : tiles(some), parts(others) {}
};

/// Times of some rays.
struct TimeSpan {
    float begin_s, end_s;
};
TimeSpan times_of(std::span<const Ray> rays);

/// Around all places where a shape is at these times: around its poses at both ends and at all keys between
/// them. `box` is that of the shape in its own frame.
Box3d box_during(const MotionView& motion, const Box3d& box, TimeSpan times);

}  // namespace citysplat::trace
