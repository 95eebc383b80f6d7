#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"
#include "trace/tracer.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace citysplat::trace {

struct CacheOptions {
    std::uint64_t budget_bytes = std::uint64_t{2} << 30;
    int loaders = 1;             ///< background threads that read tiles and build their hierarchies
    bool prefetch = true;        ///< false: load only what acquire() waits for
    bool allow_missing = false;  ///< damaged tiles are reported by acquire() instead of thrown
};

struct CacheStatistics {
    std::uint64_t tiles_loaded = 0, tiles_evicted = 0;
    std::uint64_t peak_bytes = 0;  ///< tiles and hierarchies, as the tracer counts them
    double load_s = 0;             ///< time of loader threads
    double wait_s = 0;             ///< time acquire() stood still for them
};

/// The tiles of a city that are ready for tracing, under a memory budget.
///
/// Protocol. One thread (the simulation) calls plan() and acquire(); loader threads do the work. What the
/// last acquire() asked for is pinned until the next one. A loader takes the first tile of the demand, else
/// of the plan, that is absent; it makes room by evicting the least recently used tile that is neither pinned
/// nor planned (for demand: any that is not pinned), and waits when there is none. Room is counted from
/// Tracer::estimated_bytes before a load begins, so the budget holds at every moment. What is resident cannot
/// change what rays hit; it only changes when they are answered. Nor is a plan an error: that a tile cannot
/// be loaded is told to the acquire() that asks for it.
class TileCache {
  public:
    TileCache(const TileSource& source, const Tracer& tracer, const CacheOptions& options);
    ~TileCache();
    TileCache(const TileCache&) = delete;
    TileCache& operator=(const TileCache&) = delete;

    std::uint64_t bytes(std::uint32_t tile) const { return bytes_[tile]; }
    std::uint64_t budget_bytes() const { return options_.budget_bytes; }

    /// What will be needed after the current tiles, in order of first use.
    void plan(std::vector<std::uint32_t> upcoming);

    struct Acquired {
        std::vector<TracerTilePtr> tiles;
        std::vector<std::uint32_t> missing;
    };
    /// Waits until every tile is resident. Requires that together they fit the budget and that the result of
    /// the last call has been let go. Throws CorruptionError naming the tile (see allow_missing), and
    /// Interrupted.
    Acquired acquire(std::span<const std::uint32_t> tiles, const CancelToken& cancel = {});

    CacheStatistics statistics() const;

  private:
    enum class State : std::uint8_t { absent, loading, resident, missing };
    struct Slot {
        State state = State::absent;
        bool pinned = false, planned = false;
        bool refused_ahead = false;  ///< it could not be loaded when it was only planned
        TracerTilePtr tile;
        std::list<std::uint32_t>::iterator place;  ///< in recency_, while resident
    };

    void run_loader();
    /// Next tile to load with room made for it. Called with the lock held.
    std::optional<std::uint32_t> next();
    bool make_room(std::uint64_t wanted, bool demanded);
    void evict(std::uint32_t tile);
    void load(std::uint32_t tile, std::unique_lock<std::mutex>& lock);

    const TileSource& source_;
    const Tracer& tracer_;
    const CacheOptions options_;
    std::vector<std::uint64_t> bytes_;

    mutable std::mutex mutex_;
    std::condition_variable work_, ready_;
    std::vector<Slot> slots_;
    std::list<std::uint32_t> recency_;         ///< resident tiles, least recently used first
    std::deque<std::uint32_t> demand_, plan_;  ///< still to be loaded
    std::vector<std::uint32_t> planned_;       ///< the whole plan
    std::vector<std::uint32_t> pinned_;
    std::uint64_t used_bytes_ = 0;
    std::exception_ptr failure_;
    CacheStatistics statistics_;
    bool stop_ = false;
    std::vector<std::thread> loaders_;
};

}  // namespace citysplat::trace
