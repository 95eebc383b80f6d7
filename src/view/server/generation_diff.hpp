#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"
#include "splat/levels/level_cube.hpp"
#include "view/server/city_facts.hpp"

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::view {

/// Two generations tile by tile, for OnlyInOne: what a tile has that the tile with the same key of the other
/// generation does not have. Safe to use from several threads; both generations outlive it.
class TilePairs {
  public:
    /// Everything that is stored of a splat, in terms of the world, and its place in its tile.
    using Content = decltype(splat::content_of(splat::LevelDisc{}));
    struct Rest {
        std::vector<std::pair<Content, std::size_t>> splats;  ///< sorted
        SplatTile tile;                                       ///< that they are part of
    };
    using RestPtr = std::shared_ptr<const Rest>;

    TilePairs(const ShownCity& before, const ShownCity& after);

    const ShownCity& city(int side) const { return cities_[static_cast<std::size_t>(side)]; }
    /// Whether the tile is the same object in both generations.
    bool is_same(int side, std::size_t tile) const;
    /// Throws what reading the tiles throws. The last ones are kept, some megabytes.
    RestPtr rest(int side, std::size_t tile) const;

  private:
    RestPtr make_rest(int side, std::size_t tile) const;

    std::array<ShownCity, 2> cities_;
    std::array<std::vector<std::optional<std::size_t>>, 2> partners_;  ///< tile of the same key in the other
    mutable std::mutex mutex_;
    struct Kept {
        std::pair<int, std::size_t> tile;
        RestPtr rest;
    };
    mutable std::list<Kept> kept_;  ///< last used first
    mutable std::size_t kept_splats_ = 0;
};

/// The splats of one generation that another one does not have: a splat cancels one with the same centre and
/// the same attributes, bit by bit, in whatever tile that is kept. Of several equal ones those in the first
/// tiles cancel first. Its tiles are those of the generation, without those that are the same object in both;
/// `splats` of an entry is an upper bound. Tiles are compared when they are read.
class OnlyInOne final : public TileSource {
  public:
    OnlyInOne(std::shared_ptr<const TilePairs> pairs, int side);

    std::span<const TileEntry> tiles() const override { return entries_; }
    /// What remains of a tile. Throws what reading the tiles throws.
    SplatTile load(std::size_t tile) const override;
    const ClassMap& classes() const override { return pairs_->city(side_).tiles.classes(); }
    std::string crs() const override { return pairs_->city(side_).tiles.crs(); }

  private:
    /// Contents of tiles of a side that may hold splats of this box; of the own side those before `tile`.
    std::vector<TilePairs::Content> others(int side, const TilePairs::Rest& mine, std::size_t tile) const;

    std::shared_ptr<const TilePairs> pairs_;
    int side_;
    std::vector<TileEntry> entries_;
    std::vector<std::size_t> sources_;  ///< place of each entry in the generation
};

/// How a tile differs between two generations.
struct TileChange {
    enum class Kind { changed, added, removed };
    TileKey key;
    Kind kind = Kind::changed;
    std::uint64_t only_before = 0, only_after = 0;  ///< splats
    std::string problem;                            ///< why it could not be compared
    Vec3d min{0, 0, 0}, max{0, 0, 0};               ///< around the discs of both
};

/// Two generations, and what each has alone.
struct GenerationDiff {
    GenerationDiff(const ShownCity& before, const ShownCity& after);

    /// Every tile with a splat that only one has, or that cannot be compared; sorted by key. Reads them all.
    std::vector<TileChange> changes(const CancelToken& cancel) const;

    ShownCity before, after;
    std::shared_ptr<const TilePairs> pairs;
    OnlyInOne only_before, only_after;
};

}  // namespace citysplat::view
