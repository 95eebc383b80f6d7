#pragma once

#include "cuda/on_cpu/cpu_device.hpp"
#include "cuda/optix_tracer.hpp"

#include <memory>

namespace citysplat::test {

/// The tracer on a device that runs on the CPU, and what that device is told and did.
struct Rig {
    std::shared_ptr<on_cpu::Script> script = std::make_shared<on_cpu::Script>();
    std::unique_ptr<trace::Tracer> tracer;

    explicit Rig(on_cpu::Script s = {}, gpu::OptixOptions options = small())
        : script(std::make_shared<on_cpu::Script>(s)),
          tracer(gpu::make_optix_tracer(std::make_unique<on_cpu::CpuDevice>(script), options)) {}

    /// Small buffers, so that everything takes several turns.
    static gpu::OptixOptions small() { return {0, 500, 4096}; }
};

}  // namespace citysplat::test
