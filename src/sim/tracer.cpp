#include "sim/tracer.hpp"

namespace citysplat::sim {

void Tracer::scan(const TileSet& tiles, const ScanPart& part, RayBatch& scratch,
                  std::span<Return> returns) const {
    const ReturnModel& model = part.scan.model;
    scratch.generate(part.scan, part.first, part.count);
    if (model.depth == 1) {
        const std::span<Hit> hits = scratch.empty_hits();
        closest(tiles, scratch.rays(), hits);
        scratch.make_returns(part.scan, hits, {}, returns);
    } else {
        const std::span<HitList> lists = scratch.empty_lists();
        nearest(tiles, scratch.rays(), model.depth, model.gap_m, lists);
        scratch.make_returns(part.scan, {}, lists, returns);
    }
}

}  // namespace citysplat::sim
