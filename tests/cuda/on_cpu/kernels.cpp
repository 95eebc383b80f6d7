// The kernels themselves, compiled by g++.
#include "cuda/on_cpu/cuda_double.hpp"
#include "cuda/on_cpu/programs.hpp"
#include "cuda/splat_kernels.cu"

namespace citysplat::on_cpu {

void run_decode_splats(const gpu::SplatColumns& columns, std::uint32_t count, const gpu::DecodedSplats& out) {
    for_each_thread(count, 256, [&] { decode_splats(columns, count, out); });
}

}  // namespace citysplat::on_cpu
