#pragma once

#include "sim/scan/scan_hd.hpp"

#include <cstddef>
#include <cstdint>

/// What the host tells the kernels of scan_kernels.cu, and what each of their threads does.
namespace citysplat::gpu {

/// A batch of a scan's rays on the device.
struct ScanLaunch {
    sim::ScanView scan;   ///< what it points to is on the device; a list begins with the batch's first firing
    std::uint32_t first;  ///< place of the batch's first ray in the firings; 0 for a list
    std::uint32_t count;
    trace::Ray* rays;
    const trace::Hit* hits;  ///< TraceParams::hits
    sim::Return* returns;    ///< in the order of the rays
};
static_assert(sizeof(ScanLaunch) == 304);

CITYSPLAT_HD inline sim::Firing firing_of_ray(const ScanLaunch& launch, std::uint32_t i) {
    return sim::firing_at(launch.scan.firings, launch.first + i);
}

/// Before the rays are traced.
CITYSPLAT_HD inline void generate_ray(const ScanLaunch& launch, std::uint32_t i) {
    launch.rays[i] = sim::ray_of(launch.scan, firing_of_ray(launch, i));
}

CITYSPLAT_HD inline sim::Echo echo_of_ray(const ScanLaunch& launch, std::uint32_t i) {
    const sim::ReturnModel& model = launch.scan.model;
    if (model.depth == 1) return sim::echo_of(launch.hits[i]);
    const trace::Hit* hits = launch.hits + static_cast<std::size_t>(i) * model.depth;
    std::uint32_t count = 0;
    while (count < model.depth && hits[count].exists()) ++count;
    return sim::echo_of(hits, count, model.gap_m);
}

/// Afterwards: noise, drops and intensity, packed as the host wants it.
CITYSPLAT_HD inline void make_return(const ScanLaunch& launch, std::uint32_t i) {
    const sim::Firing firing = firing_of_ray(launch, i);
    launch.returns[i] =
        sim::return_of({launch.scan.model, launch.scan.key, firing, launch.rays[i]}, echo_of_ray(launch, i));
}

}  // namespace citysplat::gpu
