#pragma once

#include "cuda/device.hpp"
#include "trace/tracer.hpp"

#include <cstddef>
#include <memory>

namespace citysplat::gpu {

struct OptixOptions {
    std::size_t memory_bytes = 0;  ///< device memory to use at most; 0: nine tenths of what is free
    std::size_t batch_hits = std::size_t{1} << 18;     ///< rays in one launch
    std::size_t staging_bytes = std::size_t{8} << 20;  ///< each of two pinned buffers for loading
};

/// The tracer contract on a GPU. It finds the same hits as the Embree tracer, bit for bit as far as the
/// device rounds as IEEE 754 says: both decide hits by the functions of ray_disc_hd.hpp in the frame of each
/// tile.
std::unique_ptr<trace::Tracer> make_optix_tracer(std::unique_ptr<Device> device,
                                                 const OptixOptions& options = {});

}  // namespace citysplat::gpu
