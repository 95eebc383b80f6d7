#pragma once

#include "core/cancel.hpp"
#include "trace/tile_cache.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace citysplat::trace {

/// How many of these rays a call should bring so that every thread has some of them.
std::size_t shared_batch(const Tracer& tracer, std::span<const Ray> rays);

/// A city as something to cast rays at, whatever part of it fits the memory. Used by one thread at a time,
/// which traces with as many as it likes.
class ResidentCity {
  public:
    ResidentCity(const TileSource& city, const Tracer& tracer, const CacheOptions& options)
        : city_(city), tracer_(tracer), cache_(city, tracer, options) {}

    const TileSource& source() const { return city_; }
    const Tracer& tracer() const { return tracer_; }

    /// Some tiles that are resident together. The hits of several passes over the same rays are merged by the
    /// tracer; returns can be made in the last.
    struct Pass {
        const TileSet& tiles;
        bool first, last;

        bool only() const { return first && last; }
    };
    /// Makes the tiles resident and calls trace() with them: at once when they fit the budget, otherwise in
    /// passes, in the order given. Returns those that are damaged (CacheOptions::allow_missing). Throws
    /// UsageError when one tile alone exceeds the budget.
    std::vector<std::uint32_t> visit(std::span<const std::uint32_t> tiles, const CancelToken& cancel,
                                     const std::function<void(const Pass&)>& trace);

    /// Tiles with splats that these rays, or any between them, may reach, nearest first.
    std::vector<std::uint32_t> reach(std::span<const Ray> rays) const;

    /// Puts the first hit of each ray into `hits`, which are empty. Neighbouring rays should be next to each
    /// other. `parts` are met besides the city.
    void closest(std::span<const Ray> rays, std::span<Hit> hits, const CancelToken& cancel,
                 std::span<const Part> parts = {});

    /// How many hits of a ray are wanted, and how far they may lie apart: see Tracer::nearest().
    struct Depth {
        std::uint32_t hits;
        float gap_m;
    };
    /// Puts the first hits of each ray into `lists`, which are empty.
    void nearest(std::span<const Ray> rays, Depth depth, std::span<HitList> lists, const CancelToken& cancel);

    /// What will be needed after the tiles of the present visit, in order of first use.
    void prefetch(std::vector<std::uint32_t> tiles) { cache_.plan(std::move(tiles)); }
    /// Memory that a tile takes, and that all resident ones may take.
    std::uint64_t bytes(std::uint32_t tile) const { return cache_.bytes(tile); }
    std::uint64_t budget_bytes() const { return cache_.budget_bytes(); }

    std::uint64_t passes() const { return passes_; }  ///< so far
    CacheStatistics statistics() const { return cache_.statistics(); }

  private:
    /// Calls trace(pass, first ray, count) for batches of the rays, in parallel, pass by pass.
    template <class Trace>
    void cast(std::span<const Ray> rays, const CancelToken& cancel, const Trace& trace);
    std::vector<std::vector<std::uint32_t>> split(std::span<const std::uint32_t> tiles) const;

    const TileSource& city_;
    const Tracer& tracer_;
    TileCache cache_;
    std::uint64_t passes_ = 0;
};

}  // namespace citysplat::trace
