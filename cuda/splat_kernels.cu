// Kernels over the splats of a tile: thin loops over the functions of *_hd.hpp headers. They are compiled to
// PTX, which the program carries and hands to the driver (cuda_device.cpp); the tests run them on the CPU.
#include "cuda/splat_columns_hd.hpp"

using namespace citysplat::gpu;

extern "C" __global__ void decode_splats(SplatColumns columns, std::uint32_t count, DecodedSplats out) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) decode_splat(columns, i, out);
}
