#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"
#include "splat/levels/city_cubes.hpp"
#include "splat/levels/cube_cache.hpp"
#include "splat/levels/level_store.hpp"
#include "splat/levels/tile_shelf.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::splat {

using LevelCubePtr = std::shared_ptr<const LevelCube>;

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

    /// As CityCubes has them.
    const std::vector<CubeId>& roots() const { return cubes_.roots(); }
    bool may_exist(const CubeId& id) const { return cubes_.may_exist(id); }
    /// The cube, without discs when there are none. Requires a level from 0 to that of the roots. Throws
    /// Interrupted; tiles that cannot be read are left out and told by missing().
    LevelCubePtr cube(const CubeId& id, const CancelToken& cancel);

    struct Progress {
        std::uint64_t done = 0, total = 0;  ///< columns of the whole city, of those that the roots need
    };
    Progress progress() const { return {columns_done_.load(), cubes_.columns()}; }

    /// Tiles that could not be read so far, with the reason.
    std::map<std::size_t, std::string> missing() const;

  private:
    using Column = CityCubes::Column;
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

    CityCubes cubes_;
    TileShelf<SplatTile> tiles_;
    CubeCache<LevelCube> cache_;
    LevelStore* store_;
    std::string store_key_;
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
