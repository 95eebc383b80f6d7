#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"
#include "splat/levels/level_cube.hpp"
#include "splat/levels/level_store.hpp"

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::splat {

using LevelCubePtr = std::shared_ptr<const LevelCube>;

/// Cubes in memory under a budget. When it is full the finest go first, and among them those not used for
/// longest: a fine cube is made from one tile, a coarse one from thousands. Safe to use from several threads.
class LevelCache {
  public:
    explicit LevelCache(std::uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

    LevelCubePtr find(const CubeId& id);
    /// What is kept: the cube, or that which was there already. A cube larger than the budget is not kept.
    LevelCubePtr keep(LevelCubePtr cube);
    std::uint64_t used_bytes() const;

  private:
    using Recency = std::list<LevelCubePtr>;

    mutable std::mutex mutex_;
    std::uint64_t budget_bytes_, used_bytes_ = 0;
    std::map<CubeId, Recency::iterator> places_;
    std::map<int, Recency> by_level_;  ///< least recently used first
};

/// The last few tiles that were read.
class TileShelf {
  public:
    TileShelf(const TileSource& city, std::uint64_t budget_bytes)
        : city_(city), budget_bytes_(budget_bytes) {}

    /// Throws what TileSource::load() throws.
    std::shared_ptr<const SplatTile> load(std::size_t tile);

  private:
    const TileSource& city_;
    std::uint64_t budget_bytes_, used_bytes_ = 0;
    std::mutex mutex_;
    std::list<std::pair<std::size_t, std::shared_ptr<const SplatTile>>> tiles_;  ///< last used first
};

struct PyramidOptions {
    std::uint64_t cache_bytes = std::uint64_t{256} << 20;
    std::uint64_t tile_bytes = std::uint64_t{64} << 20;  ///< tiles kept for their next column; one at least
    /// Where cubes above cells are kept for the next time, and the key of these splats there; may be missing.
    LevelStore* store = nullptr;
    std::string store_key{};
};

/// The levels of detail of a city, made when they are asked for.
///
/// Protocol. cube() may be called from any thread. Cells of 64 m (levels 0 to 3) are made by whoever asks, a
/// column at a time; two threads may make the same one, with the same bytes. Larger cubes are made by one
/// thread at a time, which holds `building_` and shares the columns below among the threads of the machine;
/// making a column takes no lock for long and waits for nobody.
class LevelPyramid {
  public:
    LevelPyramid(const TileSource& city, const PyramidOptions& options);

    /// The coarsest cubes, at most eight of them; some may be empty.
    const std::vector<CubeId>& roots() const { return roots_; }
    /// Whether a cube could have discs; the others are empty.
    bool may_exist(const CubeId& id) const;
    /// The cube, without discs when there are none. Requires a level from 0 to that of the roots. Throws
    /// Interrupted; tiles that cannot be read are left out and told by missing().
    LevelCubePtr cube(const CubeId& id, const CancelToken& cancel);

    struct Progress {
        std::uint64_t done = 0, total = 0;  ///< columns of the whole city, of those that the roots need
    };
    Progress progress() const { return {columns_done_.load(), columns_.size()}; }

    /// Tiles that could not be read so far, with the reason.
    std::map<std::size_t, std::string> missing() const;

  private:
    using Column = std::pair<std::int32_t, std::int32_t>;  ///< of 64 m, all heights
    using Stack = std::map<std::int32_t, std::vector<LevelDisc>>;

    Stack splats_of(const Column& column, bool& incomplete);
    /// Makes the cells of a column from `finest` to level 3 and keeps them.
    void make_column(const Column& column, int finest);
    LevelCubePtr cell(const CubeId& id, int finest);
    LevelCubePtr build(const CubeId& id, const CancelToken& cancel);
    void prepare_columns(const CubeId& id, const CancelToken& cancel);
    /// From memory or from the store.
    LevelCubePtr kept(const CubeId& id);
    LevelCubePtr from_octants(const CubeId& id, const CancelToken& cancel);

    TileShelf tiles_;
    const TileSource& city_;
    LevelCache cache_;
    LevelStore* store_;
    std::string store_key_;
    std::map<Column, std::vector<std::uint32_t>> columns_;  ///< tiles that may have splats in a column
    std::map<int, std::set<Column>> footprints_;            ///< of cubes above level 3, by level
    std::vector<CubeId> roots_;
    std::int64_t lowest_ = 0, highest_ = -1;  ///< cells of 64 m between which all discs lie
    std::mutex building_;
    mutable std::mutex mutex_;
    struct MadeColumn {
        std::set<std::int32_t> heights;  ///< of the cells with splats
        bool incomplete;
    };
    std::map<Column, MadeColumn> made_;
    std::map<std::size_t, std::string> missing_;
    std::atomic<std::uint64_t> columns_done_{0};
};

}  // namespace citysplat::splat
