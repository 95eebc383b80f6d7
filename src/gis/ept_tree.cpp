#include "gis/ept_tree.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

namespace citysplat::gis {

namespace {

/// A coordinate in steps from the corner of the cube.
std::array<std::int64_t, 3> within(const EptCube& cube, const LatticePoint& p) {
    return {p.x - cube.min_x_m * kLatticePerMetre, p.y - cube.min_y_m * kLatticePerMetre,
            p.z - cube.min_z_m * kLatticePerMetre};
}

/// Power of two of the side of a node, in steps.
int side_bits(const EptCube& cube, int depth) { return kLatticeBits + 6 + cube.leaf_depth - depth; }

EptKey key_at(const EptCube& cube, const LatticePoint& p, int depth) {
    const auto at = within(cube, p);
    const int bits = side_bits(cube, depth);
    return {depth, at[0] >> bits, at[1] >> bits, at[2] >> bits};
}

/// Does a sector have a point in the nodes of this depth? Where cells are larger than sectors only every so
/// many.
bool has_part(const EptCube& cube, const LatticePoint& p, int depth) {
    const int extra = cube.leaf_depth - depth - kEptCellsPerSide_bits;
    if (extra <= 0) return true;
    const auto at = within(cube, p);
    const std::int64_t mask = (std::int64_t{1} << extra) - 1;
    return ((at[0] >> (kLatticeBits + 6)) & mask) == 0 && ((at[1] >> (kLatticeBits + 6)) & mask) == 0;
}

struct CellKey {
    std::int64_t x, y, z;
    friend bool operator==(const CellKey&, const CellKey&) = default;
};
struct CellHash {
    std::size_t operator()(const CellKey& c) const {
        return rng::mix(static_cast<std::uint64_t>(c.x) * 0x9e3779b97f4a7c15u +
                        static_cast<std::uint64_t>(c.y) * 0xc2b2ae3d27d4eb4fu +
                        static_cast<std::uint64_t>(c.z));
    }
};

/// Takes one point of each cell for the nodes of a depth; what is left stays in `points`, in its order.
void take_cells(const EptCube& cube, int depth, std::vector<EptPoint>& points, EptNodes& nodes) {
    const int bits = std::min(side_bits(cube, depth) - kEptCellsPerSide_bits, kLatticeBits + 6);
    std::unordered_map<CellKey, std::size_t, CellHash> chosen;
    const auto cell_of = [&](const EptPoint& p) {
        const auto at = within(cube, p.place);
        return CellKey{at[0] >> bits, at[1] >> bits, at[2] >> bits};
    };
    for (std::size_t i = 0; i < points.size(); ++i) {
        const auto [at, is_new] = chosen.try_emplace(cell_of(points[i]), i);
        if (!is_new && points[i].hash() < points[at->second].hash()) at->second = i;
    }
    std::vector<bool> taken(points.size(), false);
    for (const auto& [cell, i] : chosen) taken[i] = true;
    std::vector<EptPoint> left;
    for (std::size_t i = 0; i < points.size(); ++i)
        if (taken[i])
            nodes[key_at(cube, points[i].place, depth)].push_back(points[i]);
        else
            left.push_back(points[i]);
    points = std::move(left);
}

/// The points of a node at `leaf_depth` or below that none above it took.
void divide(const EptCube& cube, int depth, std::vector<EptPoint> points, EptNodes& nodes) {
    if (points.size() <= kEptFewPoints || depth >= cube.leaf_depth + kEptDeepest) {
        nodes[key_at(cube, points[0].place, depth)] = std::move(points);
        return;
    }
    take_cells(cube, depth, points, nodes);
    std::map<EptKey, std::vector<EptPoint>> children;
    for (const EptPoint& p : points) children[key_at(cube, p.place, depth + 1)].push_back(p);
    for (auto& [key, part] : children) divide(cube, depth + 1, std::move(part), nodes);
}

}  // namespace

bool EptCube::holds(const std::array<double, 6>& box) const {
    const std::array<std::int64_t, 3> min{min_x_m, min_y_m, min_z_m};
    for (std::size_t a = 0; a < 3; ++a)
        if (box[a] < static_cast<double>(min[a]) || box[a + 3] >= static_cast<double>(min[a] + side_m()))
            return false;
    return true;
}

EptCube ept_cube_around(const std::array<double, 6>& box) {
    for (int depth = 1; depth <= kEptMostLeafDepth; ++depth) {
        EptCube cube;
        cube.leaf_depth = depth;
        const std::int64_t step = cube.side_m() / 2;
        const auto corner = [&](double v) {
            return floor_div(static_cast<std::int64_t>(std::floor(v)), step) * step;
        };
        cube.min_x_m = corner(box[0]), cube.min_y_m = corner(box[1]), cube.min_z_m = corner(box[2]);
        if (cube.holds(box)) return cube;
    }
    throw UsageError("the city is larger than an EPT can be, whose cube has a side of " +
                     std::to_string((kEptLeafSide_m << kEptMostLeafDepth) / 1000) +
                     " km at most; do splats lie far from all others?");
}

std::string EptKey::text() const {
    return std::to_string(depth) + "-" + std::to_string(x) + "-" + std::to_string(y) + "-" +
           std::to_string(z);
}

bool operator<(const EptPoint& a, const EptPoint& b) {
    const auto key = [](const EptPoint& p) {
        return std::tie(p.place, p.radius_m, p.normal.x, p.normal.y, p.normal.z, p.intensity, p.label);
    };
    return key(a) < key(b);
}

EptNodes ept_nodes(const EptCube& cube, std::vector<EptPoint> points) {
    EptNodes nodes;
    std::sort(points.begin(), points.end());
    for (int depth = 0; depth < cube.leaf_depth && !points.empty(); ++depth)
        if (has_part(cube, points[0].place, depth)) take_cells(cube, depth, points, nodes);
    std::map<EptKey, std::vector<EptPoint>> leaves;
    for (const EptPoint& p : points) leaves[key_at(cube, p.place, cube.leaf_depth)].push_back(p);
    for (auto& [key, part] : leaves) divide(cube, cube.leaf_depth, std::move(part), nodes);
    return nodes;
}

}  // namespace citysplat::gis
