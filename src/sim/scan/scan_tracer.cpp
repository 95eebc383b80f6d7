#include "sim/scan/scan_tracer.hpp"

namespace citysplat::sim {

void trace_scan(const trace::Tracer& tracer, const trace::TileSet& tiles, const ScanPart& part,
                RayBatch& scratch, std::span<Return> returns) {
    if (const auto* whole = dynamic_cast<const ScanTracer*>(&tracer)) {
        whole->scan(tiles, part, returns);
        return;
    }
    const ReturnModel& model = part.scan.model;
    scratch.generate(part.scan, part.first, part.count);
    if (model.depth == 1) {
        const std::span<trace::Hit> hits = scratch.empty_hits();
        tracer.closest(tiles, scratch.rays(), hits);
        scratch.make_returns(part.scan, hits, {}, returns);
    } else {
        const std::span<trace::HitList> lists = scratch.empty_lists();
        tracer.nearest(tiles, scratch.rays(), model.depth, model.gap_m, lists);
        scratch.make_returns(part.scan, {}, lists, returns);
    }
}

}  // namespace citysplat::sim
