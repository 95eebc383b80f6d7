#pragma once

#include "core/cancel.hpp"
#include "tiling/build/gate.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::diff {

/// How far the points of new inputs are from the surfaces that a city had before, where it had some within a
/// metre. A drive whose poses are wrong is far from it nearly everywhere; new things are far from it in a few
/// places.
struct DriveDistance {
    std::uint64_t points = 0;     ///< that were judged: a sample, chosen by hash of their place
    std::uint64_t elsewhere = 0;  ///< of the sample: no surface was within a metre
    double median_m = 0, p95_m = 0;

    /// Fewer points say nothing about a drive.
    static constexpr std::uint64_t kFewestPoints = 1000;
    bool can_judge() const { return points >= kFewestPoints; }
};

/// Points of classes that `labels_left_out` names do not count.
DriveDistance drive_distance(const tiling::ObjectStore& store, std::span<const tiling::ProductRow> tiles,
                             const std::vector<tiling::CitySource>& sources,
                             const std::vector<std::uint16_t>& labels_left_out, const CancelToken& cancel);

/// Holds a generation back when 5 % of the points of its new inputs are farther than that from the generation
/// before. The token must outlive it.
tiling::CandidateGate drive_distance_gate(double most_p95_m, const CancelToken& cancel);

}  // namespace citysplat::diff
