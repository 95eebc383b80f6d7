#pragma once

#include <cstdint>
#include <cstring>

/// The part of CUDA C++ that cuda/*.cu use, for g++.
#define __global__
#define __device__
#define __constant__

struct float3 {
    float x, y, z;
};
struct uint3 {
    unsigned x, y, z;
};
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }

inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline thread_local uint3 blockIdx, blockDim, threadIdx;

namespace citysplat::on_cpu {

/// Calls `kernel` as a launch of enough blocks for `items` threads does; the last block is not full.
template <class Kernel>
void for_each_thread(unsigned items, unsigned block, const Kernel& kernel) {
    blockDim = {block, 1, 1};
    for (unsigned b = 0; b * block < items; ++b)
        for (unsigned t = 0; t < block; ++t) {
            blockIdx = {b, 0, 0};
            threadIdx = {t, 0, 0};
            kernel();
        }
}

}  // namespace citysplat::on_cpu
