#include "splat/levels/level_cube.hpp"

#include "splat/levels/voxel_merge.hpp"
#include "splat/search/curve.hpp"

#include <cassert>
#include <tuple>

namespace citysplat::splat {

namespace {

/// The lowest 21 bits of v, each followed by two zeros.
std::uint64_t spread(std::uint64_t v) {
    v &= 0x1fffff;
    v = (v | v << 32) & 0x001f00000000ffffull;
    v = (v | v << 16) & 0x001f0000ff0000ffull;
    v = (v | v << 8) & 0x100f00f00f00f00full;
    v = (v | v << 4) & 0x10c30c30c30c30c3ull;
    return (v | v << 2) & 0x1249249249249249ull;
}

/// Position within a cube whose corner is given, in units of 2^shift steps.
std::uint64_t morton(const LatticePoint& p, const LatticePoint& corner, int shift) {
    const auto axis = [shift](std::int64_t v) { return spread(static_cast<std::uint64_t>(v) >> shift); };
    return axis(p.x - corner.x) | axis(p.y - corner.y) << 1 | axis(p.z - corner.z) << 2;
}

/// Everything but the position: an order of splats at one place.
auto attributes(const LevelDisc& d) {
    return std::tuple(d.normal, d.radius, d.label, d.intensity, d.point_count, d.group, d.range, d.incidence,
                      d.instance);
}

Splat pack(const LevelDisc& d, const LatticePoint& corner, int unit) {
    const auto at = [&](std::int64_t v, std::int64_t from) {
        return static_cast<std::int32_t>((v - from) >> unit);
    };
    const std::uint32_t radius = std::clamp<std::uint32_t>(d.radius >> unit, 1, 65535);
    return {at(d.centre.x, corner.x),
            at(d.centre.y, corner.y),
            at(d.centre.z, corner.z),
            d.normal,
            static_cast<std::uint16_t>(radius),
            d.label,
            d.intensity,
            d.point_count,
            d.group,
            d.range,
            d.incidence,
            d.instance};
}

void widen(Piece& piece, const Splat& s) {
    const std::array<std::int32_t, 3> at{s.x, s.y, s.z};
    const std::int32_t r = s.radius;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        piece.min[axis] = piece.count == 0 ? at[axis] - r : std::min(piece.min[axis], at[axis] - r);
        piece.max[axis] = piece.count == 0 ? at[axis] + r : std::max(piece.max[axis], at[axis] + r);
    }
}

/// A cube of discs that are in their order.
LevelCube pack(const CubeId& id, std::span<const LevelDisc> ordered) {
    const LatticePoint corner = id.corner();
    const int unit = unit_shift(id.level), piece_shift = side_shift(id.level) - 2;
    LevelCube cube;
    cube.id = id;
    std::vector<Splat> splats;
    splats.reserve(ordered.size());
    for (const LevelDisc& disc : ordered) {
        const auto place = static_cast<std::uint32_t>(morton(disc.centre, corner, piece_shift));
        const auto index = static_cast<std::uint32_t>(splats.size());
        splats.push_back(pack(disc, corner, unit));
        if (cube.pieces.empty() || cube.pieces.back().place != place)
            cube.pieces.push_back({.first = index, .place = place});
        widen(cube.pieces.back(), splats.back());
        ++cube.pieces.back().count;
    }
    const auto whole_m = [](std::int64_t steps) { return steps >> kLatticeBits; };
    cube.discs = SplatTile(TileFrame{whole_m(corner.x), whole_m(corner.y), whole_m(corner.z)}, splats);
    return cube;
}

}  // namespace

LatticePoint CubeId::corner() const {
    const int shift = side_shift(level);
    return {std::int64_t{x} << shift, std::int64_t{y} << shift, std::int64_t{z} << shift};
}

CubeId CubeId::parent() const {
    const int half = level + 1 > kLastCellLevel ? 1 : 0;
    return {level + 1, x >> half, y >> half, z >> half};
}

std::vector<CubeId> CubeId::children() const {
    if (level <= kLastCellLevel) return {{level - 1, x, y, z}};
    std::vector<CubeId> octants;
    for (int number = 0; number < 8; ++number) octants.push_back(octant(number));
    return octants;
}

std::string CubeId::name() const {
    return std::to_string(level) + "_" + std::to_string(x) + "_" + std::to_string(y) + "_" +
           std::to_string(z);
}

CubeId cube_of(const LatticePoint& point, int level) {
    const int shift = side_shift(level);
    const auto at = [shift](std::int64_t v) { return static_cast<std::int32_t>(v >> shift); };
    return {level, at(point.x), at(point.y), at(point.z)};
}

LevelDisc level_disc(const Splat& s, const LatticePoint& origin, int unit) {
    return {{origin.x + (std::int64_t{s.x} << unit), origin.y + (std::int64_t{s.y} << unit),
             origin.z + (std::int64_t{s.z} << unit)},
            s.normal,
            std::uint32_t{s.radius} << unit,
            s.label,
            s.intensity,
            s.point_count,
            s.group,
            s.range,
            s.incidence,
            s.instance};
}

LevelDisc LevelCube::disc(std::size_t i) const {
    return level_disc(discs.splat(i), id.corner(), unit_shift(id.level));
}

LevelCube make_leaf(const CubeId& id, std::vector<LevelDisc> splats) {
    assert(id.level == 0);
    const LatticePoint corner = id.corner();
    std::vector<KeyedIndex> order(splats.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = {morton(splats[i].centre, corner, 0), i};
    sort_by_key(order, 3 * side_shift(0), [&](const KeyedIndex& a, const KeyedIndex& b) {
        return attributes(splats[a.index]) < attributes(splats[b.index]);
    });
    std::vector<LevelDisc> ordered;
    ordered.reserve(splats.size());
    for (const KeyedIndex& entry : order) ordered.push_back(splats[entry.index]);
    return pack(id, ordered);
}

LevelCube make_level(const CubeId& id, std::span<const LevelDisc> discs) {
    assert(id.level > 0);
    constexpr int kSideBits = 3, kLabelBits = 16;
    const LatticePoint corner = id.corner();
    const int voxel = voxel_shift(id.level);
    std::vector<KeyedIndex> order(discs.size());
    for (std::uint32_t i = 0; i < order.size(); ++i)
        order[i] = {(morton(discs[i].centre, corner, voxel) << kSideBits | facing_side(discs[i].normal))
                            << kLabelBits |
                        discs[i].label,
                    i};
    const int key_bits = 3 * (side_shift(id.level) - voxel) + kSideBits + kLabelBits;
    // Sums do not depend on the order of the discs; the few things that are not sums are made so that they do
    // not, either.
    sort_by_key(order, key_bits);

    std::vector<LevelDisc> merged;
    for (std::size_t begin = 0; begin < order.size();) {
        VoxelMerge merge(voxel);
        std::size_t end = begin;
        for (; end < order.size() && order[end].key == order[begin].key; ++end)
            merge.add(discs[order[end].index]);
        merged.push_back(merge.result());
        begin = end;
    }
    return pack(id, merged);
}

}  // namespace citysplat::splat
