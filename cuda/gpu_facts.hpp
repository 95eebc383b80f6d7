#pragma once

#include <string>

namespace citysplat::gpu {

/// What was found on the way to a GPU, in the order in which it is asked. The first thing that is wrong is
/// the reason why there is none.
struct GpuFacts {
    std::string driver_missing;  ///< why the CUDA driver's library could not be loaded; empty: it was
    int driver_cuda = 0;         ///< newest CUDA version the driver knows, as 13000 for 13.0
    int needed_cuda = 0;         ///< CUDA version the device code was compiled with
    std::string driver_failure;  ///< what the driver said instead of working
    int devices = 0;
    std::string device;  ///< name of the one to use
    int capability = 0;  ///< its compute capability, as 75 for 7.5

    enum class Optix { ready, library_missing, too_old, failed };
    Optix optix = Optix::ready;
    int needed_optix_abi = 0;
    std::string optix_version;  ///< of the headers this program was compiled with
    std::string optix_failure;
};

/// Oldest compute capability the device code is compiled for.
inline constexpr int kLeastCapability = 75;

/// Why no GPU can be used, and what to do about it; empty when one can.
std::string refusal(const GpuFacts& facts);

/// 13000 → "13.0".
std::string cuda_version_text(int version);

}  // namespace citysplat::gpu
