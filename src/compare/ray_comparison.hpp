#pragma once

#include "compare/error_statistics.hpp"
#include "compare/intensity_statistics.hpp"
#include "model/recorded_scan.hpp"
#include "sim/scan/return_hd.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

/// Real scans and a city, ray by ray: every pulse of the real sensor is cast again, and what comes back is
/// held against what came back then (docs/quality.md).
namespace citysplat::compare {

/// A simulated return is in front of (behind) the real one when it is nearer (farther) by more than this.
inline constexpr double kFront_m = 0.20;
/// Intensities are compared where the ranges agree this well.
inline constexpr double kSameSurface_m = 0.10;

/// Ends of the range bins, in metres.
inline constexpr std::array<double, 7> kRangeEnds_m{
    5, 10, 20, 30, 50, 80, std::numeric_limits<double>::infinity()};

/// Some rays of real scans and what the city returned to them.
struct RayTally {
    std::uint64_t returns = 0;      ///< real ones; the next four are of these
    std::uint64_t holes = 0;        ///< the simulated ray returns nothing
    std::uint64_t front = 0;        ///< something else is met before
    std::uint64_t behind = 0;       ///< the surface is missing, and another one is met behind it
    std::uint64_t dropped = 0;      ///< of the holes: a model of the sensor loses the return
    std::uint64_t empty = 0;        ///< real rays that did not come back
    std::uint64_t extra = 0;        ///< of these: the simulated ray returns
    ErrorStatistics range;          ///< of real returns that return in simulation, too
    ErrorStatistics normal;         ///< the same errors × cosine of the incidence: along the splat's normal
    IntensityStatistics intensity;  ///< of those within kSameSurface_m

    /// Share of all rays, returned or not, that do in simulation what they did.
    double agreement() const;
    double share(std::uint64_t n) const {
        return returns == 0 ? 0 : static_cast<double>(n) / static_cast<double>(returns);
    }
    double extra_share() const {
        return empty == 0 ? 0 : static_cast<double>(extra) / static_cast<double>(empty);
    }
};

/// The table. Scans may be added in any order.
class RayComparison {
  public:
    /// `simulated` has a return for each ray of the scan.
    void add(const RecordedScan& scan, std::span<const sim::Return> simulated);

    const RayTally& all() const { return all_; }
    /// By real range, as kRangeEnds_m; extras by simulated range.
    const std::array<RayTally, kRangeEnds_m.size()>& ranges() const { return ranges_; }
    /// By class: of the point where its scan has labels, else of the splat that was met. Extras by that of
    /// the splat; rays that meet nothing and have no label are in none.
    const std::map<std::uint16_t, RayTally>& classes() const { return classes_; }
    /// By beam, from the top; empty when no scan has beams.
    const std::vector<RayTally>& beams() const { return beams_; }
    std::uint64_t scans() const { return scans_; }

  private:
    /// The rows that a ray belongs to; nullptr where it has none of a kind.
    std::array<RayTally*, 4> rows_of(const RecordedScan& scan, const RecordedRay& ray,
                                     const sim::Return& met);

    RayTally all_;
    std::array<RayTally, kRangeEnds_m.size()> ranges_;
    std::map<std::uint16_t, RayTally> classes_;
    std::vector<RayTally> beams_;
    std::uint64_t scans_ = 0;
};

}  // namespace citysplat::compare
