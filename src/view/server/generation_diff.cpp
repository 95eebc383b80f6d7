#include "view/server/generation_diff.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "splat/levels/level_cube.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace citysplat::view {

namespace {

/// A splat in terms of the world: everything that is stored of it.
auto content(const splat::LevelDisc& d) {
    return std::tuple(d.centre.x, d.centre.y, d.centre.z, d.normal, d.radius, d.label, d.intensity,
                      d.point_count, d.group, d.range, d.incidence, d.instance);
}
using Content = decltype(content(splat::LevelDisc{}));

Content content(const SplatTile& tile, std::size_t i) {
    return content(splat::level_disc(tile.splat(i), tile.frame().origin(), 0));
}

bool overlap(const TileEntry& a, const TileEntry& b) {
    return a.min.x <= b.max.x && b.min.x <= a.max.x && a.min.y <= b.max.y && b.min.y <= a.max.y &&
           a.min.z <= b.max.z && b.min.z <= a.max.z;
}

std::string object_of(const ShownCity& city, std::size_t tile) {
    return tile < city.facts.tiles.size() ? city.facts.tiles[tile].object : std::string();
}

}  // namespace

OnlyInOne::OnlyInOne(const ShownCity& of, const ShownCity& without) : of_(of), without_(without) {
    const bool same_grid = of.facts.tile_size_m == without.facts.tile_size_m;
    const auto ours = of.tiles.tiles(), theirs = without.tiles.tiles();
    std::map<TileKey, std::size_t> by_key;
    for (std::size_t i = 0; i < theirs.size(); ++i) by_key.emplace(theirs[i].key, i);
    for (std::size_t i = 0; i < ours.size(); ++i) {
        std::vector<std::size_t> opposite;
        if (same_grid) {
            // A splat lies in the tile of the point that it grew from, in both generations.
            if (const auto found = by_key.find(ours[i].key); found != by_key.end()) {
                const std::string object = object_of(of, i);
                if (!object.empty() && object == object_of(without, found->second)) continue;
                opposite.push_back(found->second);
            }
        }
        // Tiles of other sizes; on one grid also those that were split or merged.
        for (std::size_t k = 0; k < theirs.size(); ++k)
            if ((!same_grid || theirs[k].key.level != ours[i].key.level) && overlap(ours[i], theirs[k]))
                opposite.push_back(k);
        entries_.push_back(ours[i]);
        sources_.push_back(i);
        opposite_.push_back(std::move(opposite));
    }
}

SplatTile OnlyInOne::load(std::size_t tile) const {
    SplatTile ours = of_.tiles.load(sources_[tile]);
    std::vector<std::pair<Content, std::size_t>> left;
    left.reserve(ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i) left.emplace_back(content(ours, i), i);
    std::sort(left.begin(), left.end());
    for (const std::size_t other : opposite_[tile]) {
        const SplatTile theirs = without_.tiles.load(other);
        std::vector<Content> taken;
        taken.reserve(theirs.size());
        for (std::size_t i = 0; i < theirs.size(); ++i) taken.push_back(content(theirs, i));
        std::sort(taken.begin(), taken.end());
        std::vector<std::pair<Content, std::size_t>> rest;
        auto at = taken.begin();
        for (const auto& entry : left) {
            while (at != taken.end() && *at < entry.first) ++at;
            if (at != taken.end() && *at == entry.first)
                ++at;
            else
                rest.push_back(entry);
        }
        left = std::move(rest);
    }
    std::vector<std::size_t> places;
    for (const auto& entry : left) places.push_back(entry.second);
    std::sort(places.begin(), places.end());
    std::vector<Splat> splats;
    for (const std::size_t i : places) splats.push_back(ours.splat(i));
    return SplatTile(ours.frame(), splats);
}

GenerationDiff::GenerationDiff(const ShownCity& from, const ShownCity& to)
    : before(from), after(to), only_before(from, to), only_after(to, from) {}

std::vector<TileChange> GenerationDiff::changes(const CancelToken& cancel) const {
    struct Look {
        const OnlyInOne* of;
        std::size_t tile;
        std::uint64_t splats = 0;
        std::string problem;
    };
    std::vector<Look> looks;
    for (const OnlyInOne* of : {&only_before, &only_after})
        for (std::size_t i = 0; i < of->tiles().size(); ++i) looks.push_back({of, i, 0, {}});
    isolated([&] {
        parallel_for(looks.size(), [&](std::size_t i) {
            if (cancel.requested()) return;
            try {
                looks[i].splats = looks[i].of->load(looks[i].tile).size();
            } catch (const Error& e) {
                if (e.kind() != ErrorKind::bad_data && e.kind() != ErrorKind::io) throw;
                looks[i].problem = e.what();
            }
        });
    });
    cancel.check();
    // The same key names another place when the grid is another one.
    const bool same_grid = before.facts.tile_size_m == after.facts.tile_size_m;
    std::map<std::pair<TileKey, bool>, TileChange> by_key;
    for (const Look& look : looks) {
        const bool is_after = look.of == &only_after;
        const TileEntry& entry = look.of->tiles()[look.tile];
        const auto kind = is_after ? TileChange::Kind::added : TileChange::Kind::removed;
        const auto [at, is_new] =
            by_key.try_emplace({entry.key, same_grid ? false : is_after},
                               TileChange{entry.key, kind, 0, 0, {}, entry.min, entry.max});
        TileChange& change = at->second;
        if (!is_new) {
            change.kind = TileChange::Kind::changed;
            change.min = {std::min(change.min.x, entry.min.x), std::min(change.min.y, entry.min.y),
                          std::min(change.min.z, entry.min.z)};
            change.max = {std::max(change.max.x, entry.max.x), std::max(change.max.y, entry.max.y),
                          std::max(change.max.z, entry.max.z)};
        }
        (is_after ? change.only_after : change.only_before) += look.splats;
        if (change.problem.empty()) change.problem = look.problem;
    }
    std::vector<TileChange> changes;
    for (auto& [key, change] : by_key)
        if (change.only_before + change.only_after > 0 || !change.problem.empty())
            changes.push_back(std::move(change));
    return changes;
}

}  // namespace citysplat::view
