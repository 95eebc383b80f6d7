#include "citysplat/tracer_agreement.hpp"

#include "citysplat/context.hpp"
#include "core/parallel.hpp"
#include "sim/scan/scan_tracer.hpp"
#include "trace/resident_city.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace citysplat::cli {

namespace {

template <class Result, class Trace>
std::vector<Result> trace_all(std::span<const trace::Ray> rays, std::size_t batch, double& seconds,
                              Trace trace) {
    std::vector<Result> results(rays.size());
    const Stopwatch watch;
    parallel_for((rays.size() + batch - 1) / batch, [&](std::size_t i) {
        const std::size_t first = i * batch, count = std::min(batch, rays.size() - first);
        trace(rays.subspan(first, count), std::span(results).subspan(first, count));
    });
    seconds += watch.seconds();
    return results;
}

std::vector<trace::Hit> closest(const BoundTracer& bound, std::span<const trace::Ray> rays, double& seconds) {
    return trace_all<trace::Hit>(
        rays, trace::shared_batch(bound.tracer, rays), seconds,
        [&](auto part, auto hits) { bound.tracer.closest(*bound.tiles, part, hits); });
}

std::vector<trace::HitList> nearest(const BoundTracer& bound, std::span<const trace::Ray> rays,
                                    std::uint32_t depth, float gap_m, double& seconds) {
    return trace_all<trace::HitList>(
        rays, trace::shared_batch(bound.tracer, rays), seconds,
        [&](auto part, auto lists) { bound.tracer.nearest(*bound.tiles, part, depth, gap_m, lists); });
}

std::vector<sim::Return> returns(const BoundTracer& bound, const sim::ScanView& scan, double& seconds) {
    const std::size_t rays = scan.firings.count;
    sim::RayBatch sample;
    sample.generate(scan, 0, std::min(rays, trace::Tracer::kSampleRays));
    const std::size_t batch = bound.tracer.batch_rays(sample.rays());
    std::vector<sim::Return> results(rays);
    tbb::enumerable_thread_specific<sim::RayBatch> scratch;
    const Stopwatch watch;
    parallel_for((rays + batch - 1) / batch, [&](std::size_t i) {
        const std::size_t first = i * batch, count = std::min(batch, rays - first);
        sim::trace_scan(bound.tracer, *bound.tiles, {scan, first, count}, scratch.local(), results);
    });
    seconds += watch.seconds();
    return results;
}

struct RayResult {
    bool exists;
    double range_m;
};

void count(TracerAgreement& agreement, bool same, RayResult reference, RayResult candidate) {
    ++agreement.rays;
    agreement.hits += reference.exists;
    agreement.same += same;
    if (reference.exists != candidate.exists) {
        ++agreement.differing;
    } else if (reference.exists) {
        const double difference = std::fabs(reference.range_m - candidate.range_m);
        agreement.largest_difference_m = std::max(agreement.largest_difference_m, difference);
        agreement.differing += !(difference <= TracerAgreement::kTolerance_m);
    }
}

bool same_splat(const trace::Hit& a, const trace::Hit& b) { return a.splat_id == b.splat_id; }

}  // namespace

TracerAgreement& TracerAgreement::operator+=(const TracerAgreement& other) {
    rays += other.rays;
    hits += other.hits;
    same += other.same;
    differing += other.differing;
    largest_difference_m = std::max(largest_difference_m, other.largest_difference_m);
    reference_s += other.reference_s;
    candidate_s += other.candidate_s;
    return *this;
}

TracerAgreement compare_closest(const BoundTracer& reference, const BoundTracer& candidate,
                                std::span<const trace::Ray> rays) {
    TracerAgreement agreement;
    const auto a = closest(reference, rays, agreement.reference_s);
    const auto b = closest(candidate, rays, agreement.candidate_s);
    for (std::size_t i = 0; i < rays.size(); ++i)
        count(agreement, same_splat(a[i], b[i]), {a[i].exists(), a[i].range_m},
              {b[i].exists(), b[i].range_m});
    return agreement;
}

TracerAgreement compare_nearest(const BoundTracer& reference, const BoundTracer& candidate,
                                std::span<const trace::Ray> rays, std::uint32_t depth, float gap_m) {
    TracerAgreement agreement;
    const auto a = nearest(reference, rays, depth, gap_m, agreement.reference_s);
    const auto b = nearest(candidate, rays, depth, gap_m, agreement.candidate_s);
    const auto result = [&](const trace::HitList& list) -> RayResult {
        const std::uint32_t n = trace::surface_depth(list, depth, gap_m);
        return {n > 0, n > 0 ? trace::weighted_range(list, n) : 0};
    };
    for (std::size_t i = 0; i < rays.size(); ++i) {
        const std::uint32_t n = trace::surface_depth(a[i], depth, gap_m);
        bool same = n == trace::surface_depth(b[i], depth, gap_m);
        for (std::uint32_t k = 0; same && k < n; ++k) same = same_splat(a[i].hits[k], b[i].hits[k]);
        count(agreement, same, result(a[i]), result(b[i]));
    }
    return agreement;
}

TracerAgreement compare_scans(const BoundTracer& reference, const BoundTracer& candidate,
                              const sim::ScanView& scan) {
    TracerAgreement agreement;
    const auto a = returns(reference, scan, agreement.reference_s);
    const auto b = returns(candidate, scan, agreement.candidate_s);
    const auto result = [](const sim::Return& r) -> RayResult {
        return {r.status == sim::RayStatus::hit, static_cast<double>(r.range_m)};
    };
    for (std::size_t i = 0; i < a.size(); ++i)
        count(agreement, std::memcmp(&a[i], &b[i], sizeof a[i]) == 0, result(a[i]), result(b[i]));
    return agreement;
}

}  // namespace citysplat::cli
