// Kernels over the rays of a scan, one before the rays are traced and one after: thin loops over the
// functions that the CPU uses. Compiled to PTX like splat_kernels.cu; the tests run them on the CPU.
#include "cuda/scan_launch_hd.hpp"

using namespace citysplat::gpu;

extern "C" __global__ void generate_rays(ScanLaunch launch) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < launch.count) generate_ray(launch, i);
}

extern "C" __global__ void make_returns(ScanLaunch launch) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < launch.count) make_return(launch, i);
}
