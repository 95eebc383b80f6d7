#pragma once

#include "core/math/lattice.hpp"

#include <optional>
#include <string>
#include <vector>

namespace citysplat {

/// A corner of a ring, in metres of the city's coordinate system.
struct RingCorner {
    double x_m = 0, y_m = 0;
};
/// A closed line without its last corner, which is the first one again.
using Ring = std::vector<RingCorner>;
/// What an odd number of rings goes around: rings within rings are holes.
using Polygon = std::vector<Ring>;

/// Why this is no ring that has an inside: too few corners, NaN, a line that crosses itself. In words.
std::optional<std::string> why_no_ring(const Ring& ring);

/// A part of the world in the plane; all heights belong to it. As it is made it is everything, and each
/// restriction takes some away. Every position is inside or outside, and of two regions that share an edge,
/// or a box and the next, exactly one holds a position on it.
class Region {
  public:
    /// Keeps what is in the half-open box. Requires that it is not empty.
    void keep(const LatticeBox& box) { boxes_.push_back({box}); }
    /// Keeps what is in any of these half-open boxes.
    void keep_any(std::vector<LatticeBox> boxes) { boxes_.push_back(std::move(boxes)); }
    /// Keeps what is in any of these polygons. Requires that why_no_ring() has nothing to say about a ring.
    void keep_any(const std::vector<Polygon>& polygons);

    bool is_everything() const { return boxes_.empty() && shapes_.empty(); }
    bool contains(std::int64_t x, std::int64_t y) const;

    /// How much of a box is inside. `some` may be said of a box of which nothing is.
    enum class Share { none, some, all };
    Share share_of(const LatticeBox& box) const;
    /// The same region for who asks about positions in the box alone: answers sooner.
    Region near(const LatticeBox& box) const;
    /// Around the region; everything: the whole world.
    LatticeBox bounds() const;

  private:
    /// An edge with its lower end first, so that two shapes that share it decide alike.
    struct Edge {
        double low_x, low_y, high_x, high_y;  ///< in lattice steps
    };
    struct Shape {
        std::vector<Edge> edges;
        LatticeBox bounds;
        bool contains(std::int64_t x, std::int64_t y) const;
        Share share_of(const LatticeBox& box) const;
    };
    std::vector<std::vector<LatticeBox>> boxes_;  ///< inside: in one of each
    std::vector<std::vector<Shape>> shapes_;      ///< the same
};

}  // namespace citysplat
