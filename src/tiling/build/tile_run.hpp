#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/build/build_options.hpp"
#include "tiling/build/build_plan.hpp"
#include "tiling/build/tile_maker.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace citysplat::tiling {

/// Makes all planned tiles in parallel under the memory budget.
///
/// Protocol: the scheduler's slots make tiles; what they made is taken in one at a time, under a mutex, and
/// handed on in batches to `commit`, which makes them durable. The first error ends the run, or is listed in
/// the report with `keep_going`; in both cases the batches before it are committed.
class TileRun {
  public:
    /// Makes products durable and records them; sets their ids where they get some.
    using Commit = std::function<void(std::span<ProductRow>)>;

    TileRun(const TileMaker& maker, const TileProcessor& processor, const BuildOptions& options,
            Commit commit, BuildReport& report);

    /// The products of the tiles that are not empty. Counts and explains in the report.
    std::vector<ProductRow> run(std::span<const PlannedTile> planned, const CancelToken& cancel,
                                Progress& progress);

    /// What a single tile in the making leaves to the rest of the program at least.
    static constexpr std::uint64_t kBesideTiles = std::uint64_t{40} << 20;
    /// Memory that tiles may use, and one tile of them.
    static std::uint64_t budget_bytes(const BuildOptions& options);
    static std::uint64_t worker_bytes(const BuildOptions& options);
    /// Throws UsageError, with the least that is enough, when a tile needs more than there is.
    static void refuse_small_memory(std::span<const PlannedTile> planned, const TileProcessor& processor,
                                    const BuildOptions& options);

  private:
    void take_in(const PlannedTile& tile, MadeTile made);
    void commit_batch();

    const TileMaker& maker_;
    const TileProcessor& processor_;
    const BuildOptions& options_;
    const Commit commit_;
    BuildReport& report_;
    const std::size_t batch_tiles_;
    std::mutex mutex_;  ///< all below, and the report
    std::vector<ProductRow> batch_, tiles_;
    std::chrono::steady_clock::time_point last_commit_;
};

}  // namespace citysplat::tiling
