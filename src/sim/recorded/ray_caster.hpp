#pragma once

#include "core/cancel.hpp"
#include "model/recorded_scan.hpp"
#include "sim/scan/return_hd.hpp"
#include "sim/scan/scanner.hpp"
#include "trace/resident_city.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::sim {

/// Points nearer to the sensor than this are no returns: it is inside of every LiDAR's dead zone.
inline constexpr double kDeadZone_m = 0.5;

/// How recorded rays are cast again. What `simulate` does by default, without noise and drops.
struct CastOptions {
    std::uint32_t hits = SensorRun{}.hits;  ///< D of AdaSplats §6.3.4; 1: the closest hit
    float gap_m = SensorRun{}.gap_m;        ///< greatest distance between consecutive hits of one surface
    float reach_m = 200;  ///< of empty rays; others reach 10 m behind their return, at least
    /// What moves, met where it is at the time of each ray; times of parts are counted from `begin_s`.
    std::span<const trace::Part> parts{};
    double begin_s = 0;
};

/// What the city and the parts return to the rays of a recorded scan: a return for each ray, in their order.
/// `Return::beam` and `time_s` are not set. The same bits for any tiles, budget and number of threads.
std::vector<Return> cast_again(std::span<const RecordedRay> rays, const CastOptions& options,
                               trace::ResidentCity& city, const CancelToken& cancel);

}  // namespace citysplat::sim
