#include "sim/scan/ray_batch.hpp"

#include <algorithm>
#include <memory>

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
                            std::span<const trace::HitList> lists, std::span<Return> returns) {
    const ReturnModel& model = scan.model;
    if (model.depth == 1)
        put_returns(scan, returns, [&](std::size_t i) { return echo_of(hits[i]); });
    else
        put_returns(scan, returns, [&](std::size_t i) {
            return echo_of(lists[i].hits, std::min(lists[i].count, model.depth), model.gap_m);
        });
}

template <class EchoAt>
void RayBatch::put_returns(const ScanView& scan, std::span<Return> returns, const EchoAt& echo_at) {
    for (std::size_t i = 0; i < rays_.size();) {
        std::size_t count = 0;
        for (; i < rays_.size() && count < EchoColumns::kMost; ++i) {
            const Echo echo = echo_at(i);
            if (!echo.first) {
                std::construct_at(&returns[firings_[i].ray], empty_return(firings_[i], rays_[i]));
                continue;
            }
            columns_.direction_x[count] = rays_[i].direction.x;
            columns_.direction_y[count] = rays_[i].direction.y;
            columns_.direction_z[count] = rays_[i].direction.z;
            columns_.packed_normal[count] = echo.first->normal;
            columns_.ray[count] = firings_[i].ray;
            columns_.range_m[count] = echo.range_m;
            echoes_[count++] = {i, echo};
        }
        lanes_.measure(scan.model, scan.key, count, columns_);
        for (std::size_t k = 0; k < count; ++k) {
            const auto& [ray, echo] = echoes_[k];
            const Pulse pulse{scan.model, scan.key, firings_[ray], rays_[ray]};
            // Made in its place: a copy would wait for its own small writes.
            std::construct_at(&returns[firings_[ray].ray], return_of(pulse, echo, columns_.measurement(k)));
        }
    }
}

}  // namespace citysplat::sim
