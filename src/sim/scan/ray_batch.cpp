#include "sim/scan/ray_batch.hpp"

#include <algorithm>

namespace citysplat::sim {

void RayBatch::generate(const ScanView& scan, std::size_t first, std::size_t count) {
    if (scan.firings.kind == FiringPlan::Kind::list) {
        firings_ = {scan.firings.list + first, count};
    } else {
        made_.resize(count);
        for (std::size_t i = 0; i < count; ++i)
            made_[i] = firing_at(scan.firings, static_cast<std::uint32_t>(first + i));
        firings_ = made_;
    }
    rays_.resize(count);
    // Pulses of one moment share their pose.
    float known_time_s = -1;
    PoseKey at{};
    for (std::size_t i = 0; i < count; ++i) {
        if (firings_[i].time_s != known_time_s) {
            known_time_s = firings_[i].time_s;
            at = pose_at(scan, known_time_s);
        }
        rays_[i] = ray_of(scan, firings_[i], at);
    }
}

std::span<trace::Hit> RayBatch::empty_hits() {
    hits_.assign(rays_.size(), trace::Hit{});
    return hits_;
}

std::span<trace::HitList> RayBatch::empty_lists() {
    lists_.resize(rays_.size());
    for (trace::HitList& list : lists_) list.count = 0;
    return lists_;
}

void RayBatch::make_returns(const ScanView& scan, std::span<const trace::Hit> hits,
                            std::span<const trace::HitList> lists, std::span<Return> returns) const {
    const ReturnModel& model = scan.model;
    const auto put = [&](std::size_t i, const Echo& echo) {
        returns[firings_[i].ray] = return_of(model, scan.key, firings_[i], rays_[i], echo);
    };
    if (model.depth == 1) {
        for (std::size_t i = 0; i < rays_.size(); ++i) put(i, echo_of(hits[i]));
    } else {
        for (std::size_t i = 0; i < rays_.size(); ++i)
            put(i, echo_of(lists[i].hits, std::min(lists[i].count, model.depth), model.gap_m));
    }
}

}  // namespace citysplat::sim
