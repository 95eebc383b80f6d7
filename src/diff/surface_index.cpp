#include "diff/surface_index.hpp"

#include "tiling/store/splat_payload.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::diff {

namespace {

/// Edge of a cell; a place is looked for in the 27 cells around it.
constexpr double kCell_m = SurfaceIndex::kReach_m;
/// Larger discs are found within so much of their centre.
constexpr double kMostRadius_m = 3.0;

struct Cell {
    std::int64_t x, y, z;
    /// Coordinates on Earth fit 21 bits only modulo 2²¹ m: cells that far apart share a number, and are told
    /// apart by the distance.
    std::uint64_t number() const {
        constexpr std::int64_t kMask = (std::int64_t{1} << 21) - 1;
        return static_cast<std::uint64_t>(x & kMask) << 42 | static_cast<std::uint64_t>(y & kMask) << 21 |
               static_cast<std::uint64_t>(z & kMask);
    }
};

std::int64_t cell_index(double v) { return static_cast<std::int64_t>(std::floor(v / kCell_m)); }

double distance_to(const Surfel& s, Vec3d place) {
    const Vec3d d = place - s.centre;
    const double along = dot(d, s.normal);
    const double across = std::sqrt(std::max(0.0, dot(d, d) - along * along));
    const double beside = std::max(0.0, across - s.radius_m);
    return std::sqrt(along * along + beside * beside);
}

}  // namespace

std::vector<Surfel> read_surfels(const tiling::ObjectStore& store, std::span<const tiling::ProductRow> tiles,
                                 const LatticeBox& box) {
    const double min_x = to_metres(box.min_x), min_y = to_metres(box.min_y), max_x = to_metres(box.max_x),
                 max_y = to_metres(box.max_y);
    std::vector<Surfel> surfels;
    for (const tiling::ProductRow& tile : tiles) {
        const auto& b = tile.box;
        if (!tile.object || b[3] < min_x || b[0] >= max_x || b[4] < min_y || b[1] >= max_y) continue;
        const SplatTile splats = tiling::read_payload(store, *tile.object, "tile " + tile.tile.text()).splats;
        const Vec3d origin = splats.frame().origin_m();
        for (std::size_t i = 0; i < splats.size(); ++i) {
            const Disc disc = splats.disc(i);
            const Vec3d centre = origin + vec_cast<double>(disc.centre);
            if (centre.x < min_x || centre.x >= max_x || centre.y < min_y || centre.y >= max_y) continue;
            surfels.push_back({centre, vec_cast<double>(disc.normal), static_cast<double>(disc.radius),
                               splats.label()[i],
                               static_cast<SplatGroup>(unpack_attribute(splats.y()[i]) & 3)});
        }
    }
    return surfels;
}

SurfaceIndex::SurfaceIndex(std::vector<Surfel> surfels) : surfels_(std::move(surfels)) {
    for (std::uint32_t i = 0; i < surfels_.size(); ++i) {
        const Surfel& s = surfels_[i];
        const double r = std::min(s.radius_m, kMostRadius_m);
        // Half the edges of the box around a disc.
        const auto reach = [r](double n) { return r * std::sqrt(std::max(0.0, 1 - n * n)); };
        const Vec3d half{reach(s.normal.x), reach(s.normal.y), reach(s.normal.z)};
        for (auto x = cell_index(s.centre.x - half.x); x <= cell_index(s.centre.x + half.x); ++x)
            for (auto y = cell_index(s.centre.y - half.y); y <= cell_index(s.centre.y + half.y); ++y)
                for (auto z = cell_index(s.centre.z - half.z); z <= cell_index(s.centre.z + half.z); ++z)
                    entries_.push_back({Cell{x, y, z}.number(), i});
    }
    std::sort(entries_.begin(), entries_.end());
}

std::optional<SurfaceIndex::Nearest> SurfaceIndex::nearest(Vec3d place) const {
    std::optional<Nearest> best;
    const std::int64_t x = cell_index(place.x), y = cell_index(place.y), z = cell_index(place.z);
    for (std::int64_t dx = -1; dx <= 1; ++dx)
        for (std::int64_t dy = -1; dy <= 1; ++dy)
            for (std::int64_t dz = -1; dz <= 1; ++dz) {
                const std::uint64_t cell = Cell{x + dx, y + dy, z + dz}.number();
                for (auto e = std::lower_bound(entries_.begin(), entries_.end(), Entry{cell, 0});
                     e != entries_.end() && e->cell == cell; ++e) {
                    const double distance = distance_to(surfels_[e->surfel], place);
                    if (distance > kReach_m) continue;
                    if (!best || distance < best->distance_m ||
                        (distance == best->distance_m && e->surfel < best->surfel))
                        best = {e->surfel, distance};
                }
            }
    return best;
}

}  // namespace citysplat::diff
