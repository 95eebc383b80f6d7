#include "sim/drive/itinerary.hpp"

#include <algorithm>
#include <set>

namespace citysplat::sim {

namespace {

/// Scans the plan looks ahead at most; beyond, the drive is too far away to matter.
constexpr std::size_t kHorizon = 200;

}  // namespace

Itinerary::Itinerary(const TileSource& city, const SensorRun& run, const Trajectory& trajectory,
                     std::span<const double> times)
    : city_(city), run_(run), trajectory_(trajectory), times_(times) {}

const Reach& Itinerary::reach(std::size_t scan) {
    const auto found = known_.find(scan);
    if (found != known_.end()) return found->second;
    const Box3d path = path_during(run_, trajectory_, times_[scan]);
    return known_.emplace(scan, reach_from(city_, path, run_.sensor.max_range_m)).first->second;
}

Itinerary::Leg Itinerary::leg(std::size_t first, std::size_t most, std::uint64_t budget_bytes,
                              const BytesOf& bytes) {
    known_.erase(known_.begin(), known_.lower_bound(first));
    Leg leg{0, {}, true, {}};
    std::set<std::uint32_t> all;
    std::uint64_t used = 0;
    while (leg.scans < most && first + leg.scans < times_.size()) {
        std::vector<std::uint32_t> fresh;
        std::uint64_t more = 0;
        for (const std::uint32_t tile : reach(first + leg.scans).tiles)
            if (!all.contains(tile)) fresh.push_back(tile), more += bytes(tile);
        if (used + more > budget_bytes && leg.scans > 0) break;
        all.insert(fresh.begin(), fresh.end());
        used += more;
        leg.reaches.push_back(&reach(first + leg.scans));
        ++leg.scans;
        leg.fits = used <= budget_bytes;
        if (!leg.fits) break;
    }
    leg.tiles.assign(all.begin(), all.end());
    return leg;
}

std::vector<std::uint32_t> Itinerary::upcoming(std::size_t first, std::uint64_t budget_bytes,
                                               const BytesOf& bytes) {
    std::vector<std::uint32_t> order;
    std::set<std::uint32_t> seen;
    std::uint64_t used = 0;
    const std::size_t end = std::min(times_.size(), first + kHorizon);
    for (std::size_t scan = first; scan < end; ++scan)
        for (const std::uint32_t tile : reach(scan).tiles) {
            if (!seen.insert(tile).second) continue;
            used += bytes(tile);
            if (used > budget_bytes) return order;
            order.push_back(tile);
        }
    return order;
}

}  // namespace citysplat::sim
