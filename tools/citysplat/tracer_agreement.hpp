#pragma once

#include "sim/scan/scan_tracer.hpp"

#include <cstdint>
#include <span>

namespace citysplat::cli {

/// How well two tracers agree on the same rays, and how long each took. Sums of several comparisons add up.
struct TracerAgreement {
    static constexpr double kTolerance_m = 1e-3;

    std::uint64_t rays = 0;
    std::uint64_t hits = 0;  ///< of the reference
    std::uint64_t same = 0;  ///< the same splat in every place, or no hit in both; returns: the same bytes
    std::uint64_t differing = 0;  ///< rays beyond the tolerance, or with a return in one of the two only
    double largest_difference_m = 0;
    double reference_s = 0, candidate_s = 0;

    /// Part of the rays that agree within the tolerance.
    double share() const {
        return rays ? 1.0 - static_cast<double>(differing) / static_cast<double>(rays) : 1.0;
    }
    TracerAgreement& operator+=(const TracerAgreement& other);
};

/// Tiles made ready by a tracer.
struct BoundTracer {
    const trace::Tracer& tracer;
    trace::TileSetPtr tiles;
};

/// First hits of all rays by both, in batches of the size each wants, on all threads.
TracerAgreement compare_closest(const BoundTracer& reference, const BoundTracer& candidate,
                                std::span<const trace::Ray> rays);
/// The hits that make up a return (several splats of one surface), and their weighted range.
TracerAgreement compare_nearest(const BoundTracer& reference, const BoundTracer& candidate,
                                std::span<const trace::Ray> rays, std::uint32_t depth, float gap_m);
/// The returns of a whole scan, each made in the tracer's own way.
TracerAgreement compare_scans(const BoundTracer& reference, const BoundTracer& candidate,
                              const sim::ScanView& scan);

}  // namespace citysplat::cli
