#pragma once

#include "compare/error_statistics.hpp"
#include "compare/intensity_statistics.hpp"
#include "model/recorded_scan.hpp"
#include "model/region/region.hpp"
#include "sim/scan/return_hd.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
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
    std::uint64_t empty = 0;        ///< real rays that brought nothing of the city back
    std::uint64_t extra = 0;        ///< of these: the simulated ray returns
    std::uint64_t taken_away = 0;   ///< of the empty: it meets the city, and a model of the sensor loses it
    ErrorStatistics range;          ///< of real returns that return in simulation, too
    ErrorStatistics normal;         ///< the same errors × cosine of the incidence: along the splat's normal
    IntensityStatistics intensity;  ///< of those within kSameSurface_m

    /// Share of all rays, returned or not, that do in simulation what they did.
    double agreement() const;
    double share(std::uint64_t n) const {
        return returns == 0 ? 0 : static_cast<double>(n) / static_cast<double>(returns);
    }
    /// Of the empty rays that meet the city, those that a model of the sensor loses as the real one did.
    double taken_away_share() const {
        const std::uint64_t met = extra + taken_away;
        return met == 0 ? 0 : static_cast<double>(taken_away) / static_cast<double>(met);
    }
    double extra_share() const {
        return empty == 0 ? 0 : static_cast<double>(extra) / static_cast<double>(empty);
    }
};

/// The table. Scans may be added in any order.
///
/// Returns of the recording car are no surface of a city. Such a ray counts as one that did not come back, in
/// all rows but with_own_car().
class RayComparison {
  public:
    /// With a region only rays count whose real return lies in it; those that did not come back have no
    /// place.
    explicit RayComparison(Region region = {}) : region_(std::move(region)) {}

    /// `simulated` has a return for each ray of the scan.
    void add(const RecordedScan& scan, std::span<const sim::Return> simulated);

    const RayTally& all() const { return all_; }
    /// All rays, the returns of the recording car judged like any other.
    const RayTally& with_own_car() const { return with_own_car_; }
    std::uint64_t own_car() const { return own_car_; }  ///< returns of the recording car
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

    bool counts(const RecordedRay& ray) const;

    Region region_;
    RayTally all_, with_own_car_;
    std::uint64_t own_car_ = 0;
    std::array<RayTally, kRangeEnds_m.size()> ranges_;
    std::map<std::uint16_t, RayTally> classes_;
    std::vector<RayTally> beams_;
    std::uint64_t scans_ = 0;
};

}  // namespace citysplat::compare
