#pragma once

#include <cuda.h>
#include <string>

/// The functions of the CUDA driver that we use, found in libcuda.so.1 when the program runs. Nothing of CUDA
/// is linked.
namespace citysplat::gpu {

struct DriverApi {
#define X(name) decltype(&::name) name = nullptr;
#include "cuda/driver/driver_functions.inc"
#undef X

    /// Fills the functions. Returns why it cannot, or nothing. The library stays loaded until the program
    /// ends.
    std::string load();

    /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
    std::string text(CUresult result) const;
    /// Throws ResourceError for lack of memory, UnavailableError for everything else that is not success.
    void check(CUresult result, const char* doing) const;
};

}  // namespace citysplat::gpu
