// The device code itself, compiled by g++.
#include "cuda/on_cpu/programs.hpp"

#include "cuda/optix_programs.cu"

#include <mutex>

namespace citysplat::on_cpu {

const Program kIntersectionPrograms[2] = {__intersection__closest, __intersection__nearest};

Program raygen(gpu::TraceKind kind) {
    return kind == gpu::TraceKind::closest ? __raygen__closest : __raygen__nearest;
}

void launch(gpu::TraceKind kind, const gpu::TraceParams& launch_params, std::uint32_t rays,
            const Manners& manners) {
    static std::mutex one_at_a_time;  // the parameters are a global, as on the device
    const std::lock_guard lock(one_at_a_time);
    params = launch_params;
    Thread& thread = current();
    thread.manners = manners;
    for (std::uint32_t i = 0; i < rays; ++i) {
        thread.launch_index = i;
        thread.draws = 0;
        raygen(kind)();
    }
}

}  // namespace citysplat::on_cpu
