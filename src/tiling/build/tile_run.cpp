#include "tiling/build/tile_run.hpp"

#include "core/error.hpp"
#include "tiling/build/memory_scheduler.hpp"

#include <algorithm>

namespace citysplat::tiling {

namespace {

using Clock = std::chrono::steady_clock;

/// What the program needs beside the tiles: code, catalog, plan, open files.
constexpr std::uint64_t kOverheadBytes = std::uint64_t{96} << 20;
/// Finished tiles become durable in batches: this many, or this old. Each holds its file open until then.
constexpr std::size_t kBatchTiles = 64;
constexpr std::chrono::seconds kBatchAge{2};

}  // namespace

std::uint64_t TileRun::budget_bytes(const BuildOptions& options) {
    return std::max(options.memory_bytes / 2,
                    options.memory_bytes - std::min(options.memory_bytes, kOverheadBytes));
}

std::uint64_t TileRun::worker_bytes(const BuildOptions& options) {
    return budget_bytes(options) / static_cast<std::uint64_t>(options.threads);
}

void TileRun::refuse_small_memory(std::span<const PlannedTile> planned, const TileProcessor& processor,
                                  const BuildOptions& options) {
    std::uint64_t largest = 0;
    for (const PlannedTile& tile : planned)
        largest = std::max<std::uint64_t>(largest,
                                          processor.of(tile.key.kind).estimated_bytes(tile.points_at_most));
    // A sixth of a prediction is room for the holes between several tiles; a large tile is made alone.
    const std::uint64_t least = largest / 6 * 5 + kBesideTiles;
    if (!planned.empty() && least > options.memory_bytes)
        throw UsageError("--memory " + std::to_string(options.memory_bytes >> 20) +
                         "M is too little for this: the least is " + std::to_string((least >> 20) + 1) +
                         "M, for the most crowded place; what was read is kept for the next build");
}

TileRun::TileRun(const TileMaker& maker, const TileProcessor& processor, const BuildOptions& options,
                 Commit commit, BuildReport& report)
    : maker_(maker),
      processor_(processor),
      options_(options),
      commit_(std::move(commit)),
      report_(report),
      batch_tiles_(std::clamp<std::size_t>(descriptor_budget() / 4, 1, kBatchTiles)) {}

std::vector<ProductRow> TileRun::run(std::span<const PlannedTile> planned, const CancelToken& cancel,
                                     Progress& progress) {
    MemoryScheduler scheduler(budget_bytes(options_), options_.threads, cancel);
    std::vector<std::uint64_t> bytes;
    for (const PlannedTile& tile : planned)
        bytes.push_back(processor_.of(tile.key.kind).estimated_bytes(tile.points_at_most));
    report_.tiles_checked += planned.size();
    last_commit_ = Clock::now();
    if (!planned.empty()) {
        Progress::Stage stage(progress, "tiles", planned.size(), "tiles");
        try {
            scheduler.run(bytes, [&](std::size_t i, MemoryScheduler::Grant& grant) {
                const PlannedTile& tile = planned[i];
                if (options_.until && Clock::now() >= *options_.until) {
                    const std::lock_guard guard(mutex_);
                    report_.tiles_not_begun.push_back(tile.key);
                    return;
                }
                try {
                    MadeTile made = maker_.make(tile, grant);
                    const std::lock_guard guard(mutex_);
                    take_in(tile, std::move(made));
                } catch (const Error& error) {
                    // Busy is the catalog, or a plan that was closed: no fault of the tile.
                    const bool fatal = error.kind() == ErrorKind::interrupted ||
                                       error.kind() == ErrorKind::io || error.kind() == ErrorKind::busy;
                    if (!options_.keep_going || fatal) throw;
                    const std::lock_guard guard(mutex_);
                    report_.failures.push_back({tile.key, error.what()});
                }
                stage.advance(1);
            });
        } catch (const Error& error) {
            // What is finished need not be made again; but a disk that just failed is not asked once more.
            if (error.kind() != ErrorKind::io) commit_batch();
            throw;
        }
    }
    commit_batch();
    std::sort(report_.explanations.begin(), report_.explanations.end(),
              [](const Explanation& a, const Explanation& b) { return a.tile < b.tile; });
    std::sort(report_.failures.begin(), report_.failures.end(),
              [](const TileFailure& a, const TileFailure& b) { return a.tile < b.tile; });
    return std::move(tiles_);
}

void TileRun::take_in(const PlannedTile& tile, MadeTile made) {
    if (made.widened) ++report_.halo_widened;
    switch (made.how) {
        case MadeTile::How::empty:
            ++report_.tiles_empty;
            return;
        case MadeTile::How::reused:
            ++report_.tiles_reused;
            tiles_.push_back(std::move(made.product));
            return;
        case MadeTile::How::built:
            ++report_.tiles_built;
            report_.explanations.push_back({tile.key, made.reason});
            batch_.push_back(std::move(made.product));
            if (batch_.size() >= batch_tiles_ || Clock::now() - last_commit_ > kBatchAge) commit_batch();
    }
}

void TileRun::commit_batch() {
    if (!batch_.empty()) commit_(batch_);
    for (ProductRow& product : batch_) tiles_.push_back(std::move(product));
    batch_.clear();
    last_commit_ = Clock::now();
}

}  // namespace citysplat::tiling
