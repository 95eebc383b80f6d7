#pragma once

#include "trace/backend.hpp"

namespace citysplat::gpu {

/// Looks for a GPU that can trace. Loads the driver's libraries now, if this program can use them; none of
/// them is needed to start it. Never throws: what is missing is told in GpuOffer::refusal.
trace::GpuOffer find_gpu();

}  // namespace citysplat::gpu
