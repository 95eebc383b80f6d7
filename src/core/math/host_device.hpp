#pragma once

/// Marks a pure per-item function that the CPU drivers and the CUDA kernels share (headers named *_hd.hpp).
#if defined(__CUDACC__)
#define CITYSPLAT_HD __host__ __device__
#else
#define CITYSPLAT_HD
#endif
