#include "model/region/region_source.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace citysplat {

namespace {

std::string where(std::span<const TileEntry> tiles) {
    if (tiles.empty()) return "it has no splats at all";
    constexpr double kMost = std::numeric_limits<double>::max();
    double min_x = kMost, min_y = kMost, max_x = -kMost, max_y = -kMost;
    for (const TileEntry& t : tiles) {
        min_x = std::min(min_x, t.min.x), min_y = std::min(min_y, t.min.y);
        max_x = std::max(max_x, t.max.x), max_y = std::max(max_y, t.max.y);
    }
    char text[160];
    std::snprintf(text, sizeof text, "it reaches from %.1f,%.1f to %.1f,%.1f", min_x, min_y, max_x, max_y);
    return text;
}

}  // namespace

LatticeBox lattice_box_of(const TileEntry& entry) {
    return {to_lattice(entry.min.x) - 1, to_lattice(entry.min.y) - 1, to_lattice(entry.max.x) + 2,
            to_lattice(entry.max.y) + 2};
}

bool is_part_of(TileKey key, const TileKey& whole) {
    while (key.level > whole.level) key = key.parent();
    return key.level == whole.level && key.ix == whole.ix && key.iy == whole.iy;
}

RegionSource::RegionSource(std::shared_ptr<const TileSource> city, Region region,
                           const std::vector<TileKey>& tiles, const std::string& flags)
    : city_(std::move(city)), region_(std::move(region)) {
    for (std::size_t i = 0; i < city_->tiles().size(); ++i) {
        const TileEntry& entry = city_->tiles()[i];
        const auto has_it = [&entry](const TileKey& key) { return is_part_of(entry.key, key); };
        if (!tiles.empty() && std::none_of(tiles.begin(), tiles.end(), has_it)) continue;
        if (region_.share_of(lattice_box_of(entry)) == Region::Share::none) continue;
        entries_.push_back(entry);
        places_.push_back(i);
    }
    if (entries_.empty())
        throw UsageError(flags + ": nothing of the city is there; " + where(city_->tiles()));
}

SplatTile RegionSource::load(std::size_t tile) const {
    SplatTile whole = city_->load(places_[tile]);
    const LatticeBox box = lattice_box_of(entries_[tile]);
    if (region_.share_of(box) == Region::Share::all) return whole;
    const Region here = region_.near(box);
    const LatticePoint origin = whole.frame().origin();
    std::vector<Splat> kept;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const Splat splat = whole.splat(i);
        if (here.contains(origin.x + splat.x, origin.y + splat.y)) kept.push_back(splat);
    }
    return {whole.frame(), kept};
}

MeshTile RegionSource::load_mesh(std::size_t tile) const {
    MeshTile whole = city_->load_mesh(places_[tile]);
    const LatticeBox box = lattice_box_of(entries_[tile]);
    if (region_.share_of(box) == Region::Share::all) return whole;
    const Region here = region_.near(box);
    const LatticePoint origin = whole.frame().origin();
    std::vector<MeshVertex> vertices;
    std::vector<MeshTriangle> kept;
    constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> number(whole.vertex_count(), kNone);
    for (std::size_t i = 0; i < whole.triangle_count(); ++i) {
        const auto corners = whole.corners(i);
        const std::int64_t x = std::int64_t{corners[0].x} + corners[1].x + corners[2].x;
        const std::int64_t y = std::int64_t{corners[0].y} + corners[1].y + corners[2].y;
        if (!here.contains(origin.x + floor_div(x, 3), origin.y + floor_div(y, 3))) continue;
        MeshTriangle triangle = whole.triangle(i);
        for (std::uint32_t& v : triangle) {
            if (number[v] == kNone) {
                number[v] = static_cast<std::uint32_t>(vertices.size());
                vertices.push_back(whole.vertex(v));
            }
            v = number[v];
        }
        kept.push_back(triangle);
    }
    return {whole.frame(), vertices, kept};
}

}  // namespace citysplat
