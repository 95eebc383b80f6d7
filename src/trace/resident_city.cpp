#include "trace/resident_city.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "trace/tile_frustum.hpp"

#include <tbb/task_arena.h>

#include <algorithm>

namespace citysplat::trace {

std::size_t shared_batch(const Tracer& tracer, std::span<const Ray> rays) {
    const auto threads = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
    const std::size_t wanted = tracer.batch_rays(rays.first(std::min(rays.size(), Tracer::kSampleRays)));
    return std::min(wanted, std::max((rays.size() + threads - 1) / threads, Tracer::kSampleRays));
}

std::vector<std::vector<std::uint32_t>> ResidentCity::split(std::span<const std::uint32_t> tiles) const {
    std::uint64_t total = 0;
    for (const std::uint32_t tile : tiles) {
        if (bytes(tile) > budget_bytes())
            throw UsageError("tile " + city_.tiles()[tile].key.text() + " alone takes " +
                             format_bytes(bytes(tile)) + "; raise --resident (now " +
                             format_bytes(budget_bytes()) + ")");
        total += bytes(tile);
    }
    std::vector<std::vector<std::uint32_t>> passes;
    if (total <= budget_bytes()) {
        passes.emplace_back(tiles.begin(), tiles.end());
        return passes;
    }
    // Half of the budget for the pass, the other half for the prefetch of the next.
    std::uint64_t used = 0;
    for (const std::uint32_t tile : tiles) {
        if (passes.empty() || used + bytes(tile) > budget_bytes() / 2) {
            passes.emplace_back();
            used = 0;
        }
        passes.back().push_back(tile);
        used += bytes(tile);
    }
    return passes;
}

std::vector<std::uint32_t> ResidentCity::visit(std::span<const std::uint32_t> tiles,
                                               const CancelToken& cancel,
                                               const std::function<void(const Pass&)>& trace) {
    const auto passes = split(tiles);
    std::vector<std::uint32_t> missing;
    for (std::size_t p = 0; p < passes.size(); ++p) {
        cancel.check();
        TileCache::Acquired acquired = cache_.acquire(passes[p], cancel);
        missing.insert(missing.end(), acquired.missing.begin(), acquired.missing.end());
        const TileSetPtr set = tracer_.bind(acquired.tiles);
        acquired.tiles.clear();
        const bool last = p + 1 == passes.size();
        if (!last) cache_.plan(passes[p + 1]);
        ++passes_;
        trace({*set, p == 0, last});
    }
    return missing;
}

std::vector<std::uint32_t> ResidentCity::reach(std::span<const Ray> rays) const {
    std::vector<Box3d> boxes;
    for (const TileEntry& e : city_.tiles()) boxes.push_back({e.min, e.max});
    std::vector<std::uint32_t> tiles;
    for (const ReachableTile& tile : find_reachable(boxes, rays))
        if (city_.tiles()[tile.slot].splats > 0) tiles.push_back(static_cast<std::uint32_t>(tile.slot));
    return tiles;
}

template <class Trace>
void ResidentCity::cast(std::span<const Ray> rays, const CancelToken& cancel, const Trace& trace) {
    const std::size_t batch = shared_batch(tracer_, rays);
    visit(reach(rays), cancel, [&](const Pass& pass) {
        parallel_for((rays.size() + batch - 1) / batch, [&](std::size_t i) {
            cancel.check();
            trace(pass, i * batch, std::min(batch, rays.size() - i * batch));
        });
    });
}

void ResidentCity::closest(std::span<const Ray> rays, std::span<Hit> hits, const CancelToken& cancel,
                           std::span<const Part> parts) {
    cast(rays, cancel, [&](const Pass& pass, std::size_t first, std::size_t count) {
        // Once is enough for the parts: what was met is kept.
        const Scene scene(pass.tiles, pass.first ? parts : std::span<const Part>());
        tracer_.closest(scene, rays.subspan(first, count), hits.subspan(first, count));
    });
}

void ResidentCity::nearest(std::span<const Ray> rays, Depth depth, std::span<HitList> lists,
                           const CancelToken& cancel) {
    cast(rays, cancel, [&](const Pass& pass, std::size_t first, std::size_t count) {
        tracer_.nearest(pass.tiles, rays.subspan(first, count), depth.hits, depth.gap_m,
                        lists.subspan(first, count));
    });
}

}  // namespace citysplat::trace
