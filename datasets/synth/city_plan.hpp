#pragma once

#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "datasets/synth/primitives.hpp"

#include <compare>
#include <cstdint>
#include <vector>

/// The plan of the synthetic city: an endless grid of streets. A cell (i, j) owns the crossing at its node,
/// the streets from there to the east and to the north, and the block of houses between them; its local frame
/// has the node at the origin. Everything in a cell is a function of (seed, i, j), so that any piece of the
/// city can be made, dropped and made again.
namespace citysplat::synth {

/// Classes of datasets/classes/synthetic.toml.
namespace label {
inline constexpr std::uint8_t building = 1, fence = 2, pedestrian = 4, pole = 5, road_line = 6, road = 7,
                              sidewalk = 8, vegetation = 9, parked_vehicle = 10, wall = 11, traffic_sign = 12,
                              traffic_light = 18, bench = 19, moving_vehicle = 20, terrain = 22;
}
/// Labels of things that move; the static truth knows nothing of them.
constexpr bool is_dynamic(std::uint16_t l) { return l == label::pedestrian || l == label::moving_vehicle; }

/// Measures of a street, in metres.
namespace plan {
inline constexpr double kPitch = 80.0;          ///< between crossings
inline constexpr double kRoadHalf = 5.5;        ///< kerb to centre line
inline constexpr double kStreetHalf = 9.0;      ///< house line to centre line
inline constexpr double kCrown = 0.11;          ///< the middle of the road lies that much above the gutter
inline constexpr double kKerb = 0.14;           ///< height of the kerb
inline constexpr double kSidewalkRise = 0.06;   ///< from the kerb to the house line
inline constexpr double kNodeRise = 1.1;        ///< crossings lie at ±this height: grades up to 3.5 %
inline constexpr double kLaneOffset = 1.75;     ///< where cars drive, from the centre line
inline constexpr double kParkingOffset = 4.35;  ///< where cars park
inline constexpr double kParkingLine = 3.35;    ///< painted border of the parking lane
}  // namespace plan

struct Cell {
    std::int32_t i = 0, j = 0;
    friend auto operator<=>(const Cell&, const Cell&) = default;
    Vec3d origin() const { return {i * plan::kPitch, j * plan::kPitch, 0}; }
};
/// The cell on whose ground (x, y) lies.
Cell cell_at(double x, double y);
/// The ground of a cell: [x0, x0 + kPitch) × [y0, y0 + kPitch).
struct CellCorner {
    double x0, y0;
};
CellCorner corner_of(Cell cell);

/// Numbers drawn one after the other from a key.
class Dice {
  public:
    explicit Dice(std::uint64_t key) : key_(key) {}
    double between(double low, double high) { return rng::uniform(key_, counter_++, low, high); }
    bool chance(double probability) { return rng::uniform(key_, counter_++) < probability; }
    int below(int n) { return static_cast<int>(rng::uniform(key_, counter_++) * n); }
    double gaussian() { return rng::gaussian(key_, (std::uint64_t{1} << 32) + counter_++); }
    std::uint64_t word() { return rng::bits(key_, counter_++); }

  private:
    std::uint64_t key_, counter_ = 0;
};

enum class Purpose : std::uint64_t { node = 1, houses, furniture, parking, actors, route, survey, drive };
std::uint64_t key_of(std::uint64_t seed, Purpose purpose, Cell cell);

/// Height of a crossing's gutter.
double node_height(std::uint64_t seed, std::int32_t i, std::int32_t j);

/// The ground of a cell, in its local frame: crossing, streets, sidewalks, block. Closed: its pieces meet
/// without gaps except for the kerbs, which `kerbs` fills.
std::vector<Patch> ground_patches(std::uint64_t seed, Cell cell);
std::vector<Flat> kerbs(std::uint64_t seed, Cell cell);

/// Height of the ground in city coordinates. Keeps the cell it was asked for last.
class Ground {
  public:
    explicit Ground(std::uint64_t seed) : seed_(seed) {}
    double height(double x, double y);

  private:
    std::uint64_t seed_;
    Cell cell_{INT32_MAX, 0};
    std::vector<Patch> patches_;
};

}  // namespace citysplat::synth
