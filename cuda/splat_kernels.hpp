#pragma once

#include "core/splat_hd.hpp"

#include <cstdint>
#include <cuda_runtime_api.h>

/// Kernels on the columns of a splat tile that lie in device memory. Each is a thin loop over a function of a
/// *_hd.hpp header; the stream orders them. All pointers are device pointers.
namespace citysplat::gpu {

/// The geometry columns of a tile as they are on disk (core/splat_tile.hpp).
struct SplatColumns {
    const std::uint32_t *x, *y, *z, *normal;
    const std::uint16_t* radius;
    std::uint32_t count;
};

/// Box of a disc, laid out as OptixAabb.
struct DiscBox {
    float min_x, min_y, min_z, max_x, max_y, max_z;
};

cudaError_t decode_discs(const SplatColumns& columns, Disc* discs, cudaStream_t stream);
cudaError_t bound_discs(const Disc* discs, std::uint32_t count, DiscBox* boxes, cudaStream_t stream);

}  // namespace citysplat::gpu
