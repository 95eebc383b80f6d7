#pragma once

#include <string_view>

/// The device code that nvcc made of cuda/*.cu, carried in the program (cmake/CitysplatEmbed.cmake has the
/// same for texts; these are put in by the assembler).
namespace citysplat::gpu {

std::string_view splat_kernels_ptx();   ///< for the driver
std::string_view scan_kernels_ptx();    ///< for the driver
std::string_view optix_programs_ptx();  ///< for OptiX

}  // namespace citysplat::gpu
