// The kernels themselves, compiled by g++.
#include "cuda/on_cpu/cuda_double.hpp"
#include "cuda/on_cpu/programs.hpp"
#include "cuda/scan_kernels.cu"
#include "cuda/splat_kernels.cu"

namespace citysplat::on_cpu {

void run_decode_splats(const gpu::SplatColumns& columns, std::uint32_t count, const gpu::DecodedSplats& out) {
    for_each_thread(count, 256, [&] { decode_splats(columns, count, out); });
}

void run_generate_rays(const gpu::ScanLaunch& launch) {
    for_each_thread(launch.count, 256, [&] { generate_rays(launch); });
}

void run_make_returns(const gpu::ScanLaunch& launch) {
    for_each_thread(launch.count, 256, [&] { make_returns(launch); });
}

}  // namespace citysplat::on_cpu
