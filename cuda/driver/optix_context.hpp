#pragma once

#include "cuda/device.hpp"
#include "cuda/driver/driver_api.hpp"

#include <array>
#include <cstdint>
#include <optix.h>
#include <string>
#include <string_view>

namespace citysplat::gpu {

/// OptiX on one CUDA context: the pipeline of optix_programs.cu, acceleration structures and launches. The
/// context is current when members are called, and outlives this.
class OptixContext {
  public:
    /// Loads libnvoptix.so.1. Safe to call again.
    static OptixResult initialise();
    static std::string text(OptixResult result);

    OptixContext(const DriverApi& driver, CUcontext context, CUstream stream, std::string_view programs);
    ~OptixContext();
    OptixContext(const OptixContext&) = delete;
    OptixContext& operator=(const OptixContext&) = delete;

    AccelSizes accel_sizes(AccelKind kind, std::uint32_t count) const;
    std::uint64_t build(CUstream stream, const AccelBuild& task) const;
    std::uint64_t compact(CUstream stream, std::uint64_t traversable, DeviceAddress to,
                          std::size_t bytes) const;
    /// Launches of one pipeline run one after the other, whatever their streams.
    void launch(CUstream stream, TraceKind kind, DeviceAddress params, std::uint32_t rays) const;

  private:
    enum Group { raygen_closest, raygen_nearest, miss, hit_closest, hit_nearest, kGroups };

    void create_module(std::string_view programs);
    void create_groups();
    void create_pipeline();
    void create_binding_table(CUstream stream);
    void destroy() noexcept;

    const DriverApi& driver_;
    OptixDeviceContext context_ = nullptr;
    OptixModule module_ = nullptr;
    std::array<OptixProgramGroup, kGroups> groups_{};
    OptixPipeline pipeline_ = nullptr;
    CUdeviceptr records_ = 0;
};

}  // namespace citysplat::gpu
