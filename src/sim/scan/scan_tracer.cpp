#include "sim/scan/scan_tracer.hpp"

namespace citysplat::sim {

void trace_scan(const trace::Tracer& tracer, const trace::Scene& scene, const ScanPart& part,
                RayBatch& scratch, std::span<Return> returns) {
    const ReturnModel& model = part.scan.model;
    const auto* whole = dynamic_cast<const ScanTracer*>(&tracer);
    if (whole && model.beam.rays == 1) {
        whole->scan(scene, part, returns);
        return;
    }
    scratch.generate(part.scan, part.first, part.count);
    if (model.depth == 1) {
        const std::span<trace::Hit> hits = scratch.empty_hits();
        tracer.closest(scene, scratch.rays(), hits);
        scratch.make_returns(part.scan, hits, {}, returns);
    } else {
        const std::span<trace::HitList> lists = scratch.empty_lists();
        tracer.nearest(scene, scratch.rays(), model.depth, model.gap_m, lists);
        scratch.make_returns(part.scan, {}, lists, returns);
    }
}

}  // namespace citysplat::sim
