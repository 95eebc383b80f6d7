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

const Itinerary::Reach& Itinerary::reach(std::size_t scan) {
    const auto found = known_.find(scan);
    if (found != known_.end()) return found->second;
    // Origins lie between the poses that rays are interpolated from; the metre to spare below is for
    // rounding.
    Box3d path;
    for (std::uint32_t k = 0; k <= kPoseKeys; ++k) {
        const Vec3d o = pose_of_key(run_, trajectory_, times_[scan], k).translation;
        if (k == 0) path = {o, o};
        path.grow(o);
    }
    const double range = run_.sensor.max_range_m + 1;
    const auto gap = [](double a_min, double a_max, double b_min, double b_max) {
        return std::max({0.0, b_min - a_max, a_min - b_max});
    };
    Reach reach;
    const auto entries = city_.tiles();
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
        const TileEntry& e = entries[i];
        if (e.splats == 0) continue;
        const Vec3d d{gap(path.min.x, path.max.x, e.min.x, e.max.x),
                      gap(path.min.y, path.max.y, e.min.y, e.max.y),
                      gap(path.min.z, path.max.z, e.min.z, e.max.z)};
        reach.nearest_m = std::min(reach.nearest_m, length(d));
        if (dot(d, d) <= range * range) reach.tiles.push_back(i);
    }
    return known_.emplace(scan, std::move(reach)).first->second;
}

Itinerary::Leg Itinerary::leg(std::size_t first, std::size_t most, std::uint64_t budget_bytes,
                              const BytesOf& bytes) {
    known_.erase(known_.begin(), known_.lower_bound(first));
    Leg leg{0, {}, true};
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
