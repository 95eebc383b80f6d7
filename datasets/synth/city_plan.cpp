#include "datasets/synth/city_plan.hpp"

#include <cmath>

namespace citysplat::synth {

using namespace plan;

Cell cell_at(double x, double y) {
    return {static_cast<std::int32_t>(std::floor((x + kStreetHalf) / kPitch)),
            static_cast<std::int32_t>(std::floor((y + kStreetHalf) / kPitch))};
}

CellCorner corner_of(Cell cell) { return {cell.i * kPitch - kStreetHalf, cell.j * kPitch - kStreetHalf}; }

std::uint64_t key_of(std::uint64_t seed, Purpose purpose, Cell cell) {
    const auto place = static_cast<std::uint64_t>(static_cast<std::uint32_t>(cell.i)) << 32 |
                       static_cast<std::uint32_t>(cell.j);
    return rng::key(rng::key(seed, static_cast<std::uint64_t>(purpose)), place);
}

double node_height(std::uint64_t seed, std::int32_t i, std::int32_t j) {
    return rng::uniform(key_of(seed, Purpose::node, {i, j}), 0, -kNodeRise, kNodeRise);
}

namespace {

constexpr Surface kAsphalt{label::road, 18, Pattern::plain};
constexpr Surface kPaving{label::sidewalk, 35, Pattern::plain};
constexpr Surface kKerbstone{label::sidewalk, 48, Pattern::plain};
constexpr Surface kSoil{label::terrain, 28, Pattern::plain};

constexpr double kSegment = kPitch - 2 * kStreetHalf;  // street between two crossings, and side of the block
constexpr double kWalk = kStreetHalf - kRoadHalf;

/// Patch whose roles of x and y are exchanged: streets to the north are streets to the east seen in a mirror.
Patch transposed(const Patch& p) {
    return {p.y0, p.y1, p.x0, p.x1, {p.c[0], p.c[2], p.c[1], p.c[3], p.c[5], p.c[4]}, p.surface};
}

/// Road strip along x: crown across it, linear grade along it.
Patch road_strip(double x0, double x1, double from, double to, Pattern pattern) {
    const double grade = (to - from) / (x1 - x0);
    Surface surface = kAsphalt;
    surface.pattern = pattern;
    return {x0,
            x1,
            -kRoadHalf,
            kRoadHalf,
            {from - grade * x0 + kCrown, grade, 0, 0, 0, -kCrown / (kRoadHalf * kRoadHalf)},
            surface};
}

/// Sidewalk along x on the side `sign` of the road, rising towards the houses.
Patch sidewalk_strip(double from, double to, double sign) {
    const double grade = (to - from) / kSegment, rise = kSidewalkRise / kWalk;
    const double y0 = sign > 0 ? kRoadHalf : -kStreetHalf;
    return {kStreetHalf,
            kStreetHalf + kSegment,
            y0,
            y0 + kWalk,
            {from - grade * kStreetHalf + kKerb - rise * kRoadHalf, grade, sign * rise, 0, 0, 0},
            kPaving};
}

/// Corner of a crossing: z = h + kerb + rise·u·v joins the sidewalks of both streets.
Patch sidewalk_corner(double h, double sx, double sy) {
    const double a = kSidewalkRise / (kWalk * kWalk), r = kRoadHalf;
    return {sx > 0 ? kRoadHalf : -kStreetHalf,
            sx > 0 ? kStreetHalf : -kRoadHalf,
            sy > 0 ? kRoadHalf : -kStreetHalf,
            sy > 0 ? kStreetHalf : -kRoadHalf,
            {h + kKerb + a * r * r, -a * r * sx, -a * r * sy, a * sx * sy, 0, 0},
            kPaving};
}

/// The block: bilinear between the heights of its four corners.
Patch lot(double h00, double h10, double h01, double h11) {
    const double s = kSegment, o = kStreetHalf, base = kKerb + kSidewalkRise;
    const double bx = (h10 - h00) / s, by = (h01 - h00) / s, bxy = (h11 - h10 - h01 + h00) / (s * s);
    return {o,
            o + s,
            o,
            o + s,
            {h00 + base - bx * o - by * o + bxy * o * o, bx - bxy * o, by - bxy * o, bxy, 0, 0},
            kSoil};
}

/// Dome over the crossing: on each side it meets the crown of the street that leaves there.
Patch crossing(double h) {
    const double a = kCrown / (kRoadHalf * kRoadHalf);
    return {-kRoadHalf, kRoadHalf, -kRoadHalf, kRoadHalf, {h + 2 * kCrown, 0, 0, 0, -a, -a}, kAsphalt};
}

}  // namespace

std::vector<Patch> ground_patches(std::uint64_t seed, Cell cell) {
    const double h = node_height(seed, cell.i, cell.j);
    const double east = node_height(seed, cell.i + 1, cell.j), north = node_height(seed, cell.i, cell.j + 1);
    const double far = node_height(seed, cell.i + 1, cell.j + 1);
    std::vector<Patch> patches;
    patches.push_back(crossing(h));
    for (const auto& [x0, x1] : {std::pair{kRoadHalf, kStreetHalf}, {-kStreetHalf, -kRoadHalf}}) {
        patches.push_back(road_strip(x0, x1, h, h, Pattern::plain));
        patches.push_back(transposed(road_strip(x0, x1, h, h, Pattern::plain)));
    }
    for (const double sx : {-1.0, 1.0})
        for (const double sy : {-1.0, 1.0}) patches.push_back(sidewalk_corner(h, sx, sy));
    const double begin = kStreetHalf, end = kStreetHalf + kSegment;
    patches.push_back(road_strip(begin, end, h, east, Pattern::street_east));
    patches.push_back(transposed(road_strip(begin, end, h, north, Pattern::street_north)));
    for (const double sign : {-1.0, 1.0}) {
        patches.push_back(sidewalk_strip(h, east, sign));
        patches.push_back(transposed(sidewalk_strip(h, north, sign)));
    }
    patches.push_back(lot(h, east, north, far));
    return patches;
}

std::vector<Flat> kerbs(std::uint64_t seed, Cell cell) {
    const double h = node_height(seed, cell.i, cell.j);
    const double east = node_height(seed, cell.i + 1, cell.j), north = node_height(seed, cell.i, cell.j + 1);
    std::vector<Flat> flats;
    const Vec3d up{0, 0, kKerb};
    for (const double sign : {-1.0, 1.0}) {
        flats.push_back(
            Flat::make({kStreetHalf, sign * kRoadHalf, h}, {kSegment, 0, east - h}, up, false, kKerbstone));
        flats.push_back(
            Flat::make({sign * kRoadHalf, kStreetHalf, h}, {0, kSegment, north - h}, up, false, kKerbstone));
        for (const double other : {-1.0, 1.0}) {
            const Vec3d corner{sign * kRoadHalf, other * kRoadHalf, h};
            flats.push_back(Flat::make(corner, {sign * kWalk, 0, 0}, up, false, kKerbstone));
            flats.push_back(Flat::make(corner, {0, other * kWalk, 0}, up, false, kKerbstone));
        }
    }
    return flats;
}

double Ground::height(double x, double y) {
    const Cell cell = cell_at(x, y);
    if (cell != cell_) {
        patches_ = ground_patches(seed_, cell);
        cell_ = cell;
    }
    const Vec3d o = cell.origin();
    const double lx = x - o.x, ly = y - o.y;
    for (const Patch& p : patches_)
        if (lx >= p.x0 && lx <= p.x1 && ly >= p.y0 && ly <= p.y1) return p.height(lx, ly);
    return node_height(seed_, cell.i, cell.j);  // only rounding at the rim of a cell gets here
}

Look look_of(Surface surface, Vec3d p) {
    const Look plain{surface.label, surface.reflectance_percent / 100.0};
    if (surface.pattern == Pattern::plain) return plain;
    const Look paint{label::road_line, 0.85};
    // In the frame of the street: `right` is the right lane of those who drive away from the cell's node.
    const bool east = surface.pattern == Pattern::street_east;
    const double along = (east ? p.x : p.y) - kStreetHalf, right = east ? -p.y : p.x;
    const double across = std::fabs(right), from_end = std::min(along, kSegment - along);
    if (from_end > 0.4 && from_end < 3.0)  // zebra crossing
        return across < 5.0 && std::fmod(across + 0.25, 1.0) < 0.5 ? paint : plain;
    if (from_end < 4.0) {  // stop line, for those who drive towards the crossing
        const bool approaching = (along < from_end + 1) != (right > 0);
        return from_end > 3.6 && approaching && across > 0.1 && across < kParkingLine ? paint : plain;
    }
    if (across < 0.06) return std::fmod(along, 4.5) < 1.5 ? paint : plain;  // centre line, dashed
    if (std::fabs(across - kParkingLine) < 0.05) return std::fmod(along, 0.5) < 0.35 ? paint : plain;
    return plain;
}

}  // namespace citysplat::synth
