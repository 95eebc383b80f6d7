#include "core/disc_bounds_hd.hpp"
#include "cuda/splat_kernels.hpp"

namespace citysplat::gpu {

namespace {

constexpr unsigned kBlock = 256;

__global__ void decode_kernel(SplatColumns c, Disc* discs) {
    const std::uint32_t i = blockIdx.x * kBlock + threadIdx.x;
    if (i < c.count) discs[i] = unpack_disc(c.x[i], c.y[i], c.z[i], c.normal[i], c.radius[i]);
}

__global__ void bounds_kernel(const Disc* discs, std::uint32_t count, DiscBox* boxes) {
    const std::uint32_t i = blockIdx.x * kBlock + threadIdx.x;
    if (i >= count) return;
    const Vec3f reach = disc_reach(discs[i].normal, discs[i].radius);
    const Vec3f low = discs[i].centre - reach, high = discs[i].centre + reach;
    boxes[i] = {low.x, low.y, low.z, high.x, high.y, high.z};
}

}  // namespace

cudaError_t decode_discs(const SplatColumns& columns, Disc* discs, cudaStream_t stream) {
    if (columns.count == 0) return cudaSuccess;
    decode_kernel<<<(columns.count + kBlock - 1) / kBlock, kBlock, 0, stream>>>(columns, discs);
    return cudaGetLastError();
}

cudaError_t bound_discs(const Disc* discs, std::uint32_t count, DiscBox* boxes, cudaStream_t stream) {
    if (count == 0) return cudaSuccess;
    bounds_kernel<<<(count + kBlock - 1) / kBlock, kBlock, 0, stream>>>(discs, count, boxes);
    return cudaGetLastError();
}

}  // namespace citysplat::gpu
