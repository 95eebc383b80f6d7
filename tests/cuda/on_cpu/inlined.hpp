#pragma once

/// Included before everything else where coverage is measured: shared functions become part of the programs
/// and kernels that use them, so that only their use there counts.
#include "core/math/host_device.hpp"
#undef CITYSPLAT_HD
#define CITYSPLAT_HD [[gnu::always_inline]]
