#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::splat {

/// Boxes over points that are sorted along a space-filling curve: sixteen consecutive points are a leaf,
/// sixteen consecutive boxes a node of the next level, up to one root. Nothing but boxes is stored (1.6 bytes
/// a point); the points stay where they are. Requires the columns to outlive the index.
class NeighbourIndex {
  public:
    static constexpr std::size_t kFanOut = 16;
    /// Coordinate of children that do not exist: farther than any point (|.| < 2²⁹) from every query.
    static constexpr std::int32_t kNowhere = 1 << 30;

    struct Node {
        std::int32_t min_x[kFanOut], min_y[kFanOut], min_z[kFanOut];
        std::int32_t max_x[kFanOut], max_y[kFanOut], max_z[kFanOut];
    };

    NeighbourIndex(std::span<const std::int32_t> x, std::span<const std::int32_t> y,
                   std::span<const std::int32_t> z, std::span<const std::uint32_t> rank);

    std::size_t size() const { return x_.size(); }
    std::span<const std::int32_t> x() const { return x_; }
    std::span<const std::int32_t> y() const { return y_; }
    std::span<const std::int32_t> z() const { return z_; }
    std::span<const std::uint32_t> rank() const { return rank_; }
    /// Level 0 holds the boxes of the leaves; the last level is one node. Empty when there are no points.
    std::span<const std::vector<Node>> levels() const { return levels_; }

  private:
    std::span<const std::int32_t> x_, y_, z_;
    std::span<const std::uint32_t> rank_;
    std::vector<std::vector<Node>> levels_;
};

}  // namespace citysplat::splat
