#pragma once

#include "cuda/device.hpp"
#include "cuda/on_cpu/traversal.hpp"

namespace citysplat::on_cpu {

/// Runs a ray generation program of optix_programs.cu for each index, with these parameters.
void launch(gpu::TraceKind kind, const gpu::TraceParams& params, std::uint32_t rays, const Manners& manners);

/// Run the kernels of splat_kernels.cu and scan_kernels.cu.
void run_decode_splats(const gpu::SplatColumns& columns, std::uint32_t count, const gpu::DecodedSplats& out);
void run_generate_rays(const gpu::ScanLaunch& launch);
void run_make_returns(const gpu::ScanLaunch& launch);

}  // namespace citysplat::on_cpu
