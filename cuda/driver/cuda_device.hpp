#pragma once

#include "cuda/device.hpp"
#include "cuda/driver/driver_api.hpp"

#include <memory>

namespace citysplat::gpu {

/// Device `ordinal` as CUDA counts them. Throws UnavailableError or ResourceError when it does not start.
std::unique_ptr<Device> make_cuda_device(const DriverApi& driver, int ordinal);

}  // namespace citysplat::gpu
