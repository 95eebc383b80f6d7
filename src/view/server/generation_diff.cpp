#include "view/server/generation_diff.hpp"

#include "core/error.hpp"
#include "core/math/box.hpp"
#include "core/parallel.hpp"
#include "splat/levels/level_cube.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace citysplat::view {

namespace {

/// Of tiles that are kept for their neighbours: about 128 MB.
constexpr std::size_t kMostKeptSplats = std::size_t{1} << 21;

bool overlap(const TileEntry& a, Vec3d min, Vec3d max) {
    return a.min.x <= max.x && min.x <= a.max.x && a.min.y <= max.y && min.y <= a.max.y && a.min.z <= max.z &&
           min.z <= a.max.z;
}

std::string object_of(const ShownCity& city, std::size_t tile) {
    return tile < city.facts.tiles.size() ? city.facts.tiles[tile].object : std::string();
}

std::vector<std::pair<TilePairs::Content, std::size_t>> sorted_contents(const SplatTile& tile) {
    std::vector<std::pair<TilePairs::Content, std::size_t>> all;
    all.reserve(tile.size());
    for (std::size_t i = 0; i < tile.size(); ++i)
        all.emplace_back(splat::content_of(splat::level_disc(tile.splat(i), tile.frame().origin(), 0)), i);
    std::sort(all.begin(), all.end());
    return all;
}

/// Around the centres.
Box3d box_of(const TilePairs::Rest& rest) {
    Box3d box = kEmptyBox;
    for (const auto& [content, place] : rest.splats)
        box.grow(Vec3d{to_metres(std::get<0>(content)), to_metres(std::get<1>(content)),
                       to_metres(std::get<2>(content))});
    return box;
}

}  // namespace

TilePairs::TilePairs(const ShownCity& before, const ShownCity& after) : cities_{before, after} {
    // The same key names another place when the grid is another one.
    const bool same_grid = before.facts.tile_size_m == after.facts.tile_size_m;
    for (const int side : {0, 1}) {
        const auto ours = city(side).tiles.tiles(), theirs = city(1 - side).tiles.tiles();
        std::map<TileKey, std::size_t> by_key;
        for (std::size_t i = 0; i < theirs.size() && same_grid; ++i) by_key.emplace(theirs[i].key, i);
        auto& partners = partners_[static_cast<std::size_t>(side)];
        for (const TileEntry& tile : ours) {
            const auto found = by_key.find(tile.key);
            partners.push_back(found == by_key.end() ? std::nullopt : std::optional(found->second));
        }
    }
}

bool TilePairs::is_same(int side, std::size_t tile) const {
    const auto partner = partners_[static_cast<std::size_t>(side)][tile];
    const std::string object = object_of(city(side), tile);
    return partner && !object.empty() && object == object_of(city(1 - side), *partner);
}

TilePairs::RestPtr TilePairs::rest(int side, std::size_t tile) const {
    const std::pair name(side, tile);
    {
        const std::lock_guard lock(mutex_);
        for (auto at = kept_.begin(); at != kept_.end(); ++at)
            if (at->tile == name) {
                kept_.splice(kept_.begin(), kept_, at);
                return at->rest;
            }
    }
    // Two threads may make the same one: that costs time and nothing else.
    const RestPtr made = make_rest(side, tile);
    const std::lock_guard lock(mutex_);
    kept_.push_front({name, made});
    kept_splats_ += made->tile.size();
    while (kept_splats_ > kMostKeptSplats && kept_.size() > 1) {
        kept_splats_ -= kept_.back().rest->tile.size();
        kept_.pop_back();
    }
    return made;
}

TilePairs::RestPtr TilePairs::make_rest(int side, std::size_t tile) const {
    SplatTile ours = city(side).tiles.load(tile);
    auto splats = sorted_contents(ours);
    if (const auto partner = partners_[static_cast<std::size_t>(side)][tile]) {
        const auto theirs = sorted_contents(city(1 - side).tiles.load(*partner));
        std::vector<std::pair<Content, std::size_t>> left;
        auto at = theirs.begin();
        for (const auto& entry : splats) {
            while (at != theirs.end() && at->first < entry.first) ++at;
            if (at != theirs.end() && at->first == entry.first)
                ++at;
            else
                left.push_back(entry);
        }
        splats = std::move(left);
    }
    return std::make_shared<const Rest>(Rest{std::move(splats), std::move(ours)});
}

OnlyInOne::OnlyInOne(std::shared_ptr<const TilePairs> pairs, int side)
    : pairs_(std::move(pairs)), side_(side) {
    const auto tiles = pairs_->city(side).tiles.tiles();
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        if (pairs_->is_same(side, i)) continue;
        entries_.push_back(tiles[i]);
        sources_.push_back(i);
    }
}

std::vector<TilePairs::Content> OnlyInOne::others(int side, const TilePairs::Rest& mine,
                                                  std::size_t tile) const {
    const Box3d box = box_of(mine);
    const auto tiles = pairs_->city(side).tiles.tiles();
    std::vector<TilePairs::Content> found;
    for (std::size_t i = 0; i < (side == side_ ? tile : tiles.size()); ++i) {
        if (!overlap(tiles[i], box.min, box.max) || pairs_->is_same(side, i)) continue;
        for (const auto& [content, place] : pairs_->rest(side, i)->splats) {
            const auto at =
                std::lower_bound(mine.splats.begin(), mine.splats.end(), std::pair(content, std::size_t{0}));
            if (at != mine.splats.end() && at->first == content) found.push_back(content);
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

SplatTile OnlyInOne::load(std::size_t entry) const {
    const std::size_t tile = sources_[entry];
    const TilePairs::RestPtr mine = pairs_->rest(side_, tile);
    if (mine->splats.empty()) return SplatTile(mine->tile.frame(), {});
    // What tiles before this one have cancels before what this one has.
    const auto earlier = others(side_, *mine, tile), opposite = others(1 - side_, *mine, tile);
    const auto count = [](const std::vector<TilePairs::Content>& in, const TilePairs::Content& content) {
        const auto [first, last] = std::equal_range(in.begin(), in.end(), content);
        return last - first;
    };
    std::vector<std::size_t> places;
    for (auto at = mine->splats.begin(); at != mine->splats.end();) {
        auto cancelled = std::max<std::ptrdiff_t>(0, count(opposite, at->first) - count(earlier, at->first));
        const TilePairs::Content content = at->first;
        for (; at != mine->splats.end() && at->first == content; ++at)
            if (cancelled-- <= 0) places.push_back(at->second);
    }
    std::sort(places.begin(), places.end());
    std::vector<Splat> splats;
    for (const std::size_t i : places) splats.push_back(mine->tile.splat(i));
    return SplatTile(mine->tile.frame(), splats);
}

GenerationDiff::GenerationDiff(const ShownCity& from, const ShownCity& to)
    : before(from),
      after(to),
      pairs(std::make_shared<const TilePairs>(from, to)),
      only_before(pairs, 0),
      only_after(pairs, 1) {}

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
