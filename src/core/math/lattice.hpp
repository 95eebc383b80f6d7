#pragma once

#include "core/math/vec_hd.hpp"

#include <cmath>
#include <compare>
#include <cstdint>

namespace citysplat {

/// Every coordinate of a city lives on a lattice of 2⁻¹³ m (0.12 mm), as an integer. Integers make "the same
/// bits whichever tile does it" a matter of arithmetic instead of luck: see docs/architecture.md.
inline constexpr int kLatticeBits = 13;
inline constexpr std::int64_t kLatticePerMetre = std::int64_t{1} << kLatticeBits;
inline constexpr double kLatticeStep_m = 1.0 / static_cast<double>(kLatticePerMetre);

/// Coordinates beyond this are not on Earth in any projected system; readers refuse them.
inline constexpr double kMaxWorld_m = 1.0e8;

/// A position in the world, in lattice steps.
struct LatticePoint {
    std::int64_t x = 0, y = 0, z = 0;
    friend auto operator<=>(const LatticePoint&, const LatticePoint&) = default;
};

/// Nearest lattice coordinate (halves go up). Requires |metres| <= kMaxWorld_m.
inline std::int64_t to_lattice(double metres) {
    return static_cast<std::int64_t>(std::floor(metres * static_cast<double>(kLatticePerMetre) + 0.5));
}
inline constexpr double to_metres(std::int64_t steps) { return static_cast<double>(steps) * kLatticeStep_m; }

/// Quotient rounded towards minus infinity: cells are half-open on both sides of zero. Requires b > 0.
inline constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    const std::int64_t q = a / b;
    return (a % b < 0) ? q - 1 : q;
}

/// Origin of a tile's local frame, in whole metres. Local coordinates are lattice steps from here; within 1
/// km they are exact in float32, and so is the difference of two of them.
struct TileFrame {
    std::int64_t x_m = 0, y_m = 0, z_m = 0;

    LatticePoint origin() const {
        return {x_m * kLatticePerMetre, y_m * kLatticePerMetre, z_m * kLatticePerMetre};
    }
    Vec3d origin_m() const {
        return {static_cast<double>(x_m), static_cast<double>(y_m), static_cast<double>(z_m)};
    }
    friend auto operator<=>(const TileFrame&, const TileFrame&) = default;
};

/// Half-open rectangle on the lattice: [min, max) in x and y, all z.
struct LatticeBox {
    std::int64_t min_x = 0, min_y = 0, max_x = 0, max_y = 0;

    bool contains(std::int64_t x, std::int64_t y) const {
        return x >= min_x && x < max_x && y >= min_y && y < max_y;
    }
    bool intersects(const LatticeBox& b) const {
        return min_x < b.max_x && b.min_x < max_x && min_y < b.max_y && b.min_y < max_y;
    }
    LatticeBox widened(std::int64_t by) const { return {min_x - by, min_y - by, max_x + by, max_y + by}; }
    friend auto operator<=>(const LatticeBox&, const LatticeBox&) = default;
};

}  // namespace citysplat
