#pragma once

#include "sim/scan/ray_batch.hpp"
#include "sim/scan/scan_hd.hpp"
#include "trace/tracer.hpp"

#include <cstddef>
#include <span>

namespace citysplat::sim {

/// Some consecutive firings of a scan.
struct ScanPart {
    const ScanView& scan;
    std::size_t first, count;
};

/// What a tracer is, too, that makes the rays and the returns of a scan itself, on its device.
class ScanTracer {
  public:
    virtual ~ScanTracer() = default;
    /// See trace_scan().
    virtual void scan(const trace::Scene& scene, const ScanPart& part, std::span<Return> returns) const = 0;
};

/// Fires a part of a scan at this scene alone and puts each return in its place among `returns` of the whole
/// scan. Both ways give the same bytes: generate, trace and make returns on the CPU (in `scratch`), or all of
/// it by a ScanTracer. Pulses with a width go the first way: their sub-rays are traced by the tracer, and
/// gathered here.
void trace_scan(const trace::Tracer& tracer, const trace::Scene& scene, const ScanPart& part,
                RayBatch& scratch, std::span<Return> returns);

}  // namespace citysplat::sim
