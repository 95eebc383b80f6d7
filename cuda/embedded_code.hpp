#pragma once

#include <string_view>

/// The device code that nvcc made of cuda/*.cu, carried in the program (cmake/CitysplatEmbed.cmake has the
/// same for texts; these are put in by the assembler).
namespace citysplat::gpu {

std::string_view kernels_ptx();   ///< splat_kernels.cu, for the driver
std::string_view programs_ptx();  ///< optix_programs.cu, for OptiX

}  // namespace citysplat::gpu
