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
    const BeamModel& beam = scan.model.beam;
    rays_.resize(count * beam.rays);
    // Pulses of one moment share their pose. Beams come one after the other in runs of sixteen columns
    // (firing.cpp), so the last sixteen moments are known.
    struct Moment {
        float time_s = -1;
        PoseKey pose;
    };
    std::array<Moment, 16> moments;
    for (std::size_t i = 0; i < count; ++i) {
        Moment& moment = moments[i % moments.size()];
        if (firings_[i].time_s != moment.time_s)
            moment = {firings_[i].time_s, pose_at(scan, firings_[i].time_s)};
        if (beam.rays == 1) {
            rays_[i] = ray_of(scan, firings_[i], moment.pose);
            continue;
        }
        Firing sub = firings_[i];
        for_each_sub_ray(beam, firings_[i].direction, sub.ray, [&](std::uint32_t k, Vec3f direction) {
            sub.direction = direction;
            rays_[i * beam.rays + k] = ray_of(scan, sub, moment.pose);
        });
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
        put_echoes(scan, returns, [&](std::size_t i) { return echo_of(hits[i]); });
    else
        put_echoes(scan, returns, [&](std::size_t i) {
            return echo_of(lists[i].hits, std::min(lists[i].count, model.depth), model.gap_m);
        });
}

namespace {

/// A return is in two lines of the cache.
void prefetch_to_write(Return* place) {
    __builtin_prefetch(place, 1);
    __builtin_prefetch(reinterpret_cast<std::byte*>(place + 1) - 1, 1);
}

}  // namespace

template <class EchoAt>
void RayBatch::put_echoes(const ScanView& scan, std::span<Return> returns, const EchoAt& echo_at) {
    const BeamModel& beam = scan.model.beam;
    if (beam.rays == 1) return put_returns(scan, 0, returns, echo_at);
    gathered_.resize(firings_.size());
    for (std::size_t i = 0; i < firings_.size(); ++i) {
        PulseGatherer pulse(scan.model);
        for (std::uint32_t k = 0; k < beam.rays; ++k)
            pulse.add(k, echo_at(i * beam.rays + k), rays_[i * beam.rays + k]);
        gathered_[i] = pulse.reported();
    }
    const std::size_t pulses = returns.size() / returns_per_pulse(beam);
    for (std::uint32_t number = 0; number < returns_per_pulse(beam); ++number) {
        const std::span<Return> block = returns.subspan(number * pulses, pulses);
        put_returns(scan, number, block, [&](std::size_t i) { return gathered_[i].of[number].echo; });
        for (std::size_t i = 0; i < firings_.size(); ++i)
            if (number < gathered_[i].count)
                block[firings_[i].ray].intensity = whole_intensity(gathered_[i].of[number].intensity);
    }
}

template <class EchoAt>
void RayBatch::put_returns(const ScanView& scan, std::uint32_t number, std::span<Return> returns,
                           const EchoAt& echo_at) {
    const std::uint32_t each = scan.model.beam.rays;
    for (std::size_t i = 0; i < firings_.size();) {
        std::size_t count = 0;
        for (; i < firings_.size() && count < EchoColumns::kMost; ++i) {
            // Returns of neighbours lie a column apart: the memory does not see coming what is written next.
            prefetch_to_write(&returns[firings_[i].ray]);
            const Echo echo = echo_at(i);
            const trace::Ray& axis = rays_[i * each];
            if (!echo.first) {
                std::construct_at(&returns[firings_[i].ray], empty_return(firings_[i], axis));
                continue;
            }
            columns_.direction_x[count] = axis.direction.x;
            columns_.direction_y[count] = axis.direction.y;
            columns_.direction_z[count] = axis.direction.z;
            columns_.packed_normal[count] = echo.first->normal;
            columns_.ray[count] = noise_ray(firings_[i].ray, number);
            columns_.range_m[count] = echo.range_m;
            echoes_[count++] = {i, echo};
        }
        lanes_.measure(scan.model, scan.key, count, columns_);
        for (std::size_t k = 0; k < count; ++k) {
            const auto& [i_pulse, echo] = echoes_[k];
            const Pulse pulse{scan.model, scan.key, firings_[i_pulse], rays_[i_pulse * each], number};
            // Made in its place: a copy would wait for its own small writes.
            std::construct_at(&returns[firings_[i_pulse].ray],
                              return_of(pulse, echo, columns_.measurement(k)));
        }
    }
}

}  // namespace citysplat::sim
