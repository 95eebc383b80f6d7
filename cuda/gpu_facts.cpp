#include "cuda/gpu_facts.hpp"

namespace citysplat::gpu {

std::string cuda_version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string refusal(const GpuFacts& f) {
    if (!f.driver_missing.empty())
        return "the NVIDIA driver is missing (" + f.driver_missing + "); install it";
    if (f.driver_cuda < f.needed_cuda)
        return "the NVIDIA driver is too old: it knows CUDA " + cuda_version_text(f.driver_cuda) +
               ", this program needs " + cuda_version_text(f.needed_cuda) + "; update the driver";
    if (!f.driver_failure.empty()) return "the NVIDIA driver does not work (" + f.driver_failure + ")";
    if (f.devices == 0) return "there is no NVIDIA GPU (none is installed, or CUDA_VISIBLE_DEVICES hides it)";
    if (f.capability < kLeastCapability)
        return f.device + " is too old: compute capability " + std::to_string(f.capability / 10) + "." +
               std::to_string(f.capability % 10) + ", at least 7.5 (Turing) is needed";
    switch (f.optix) {
        case GpuFacts::Optix::library_missing:
            return "OptiX is missing: the driver came without libnvoptix.so.1 (" + f.optix_failure +
                   "); install the driver's graphics libraries";
        case GpuFacts::Optix::too_old:
            return "the driver's OptiX is too old: this program was compiled for OptiX " + f.optix_version +
                   " (ABI " + std::to_string(f.needed_optix_abi) +
                   "); update the driver, or build with older OptiX headers";
        case GpuFacts::Optix::failed:
            return "OptiX does not work on " + f.device + " (" + f.optix_failure + ")";
        case GpuFacts::Optix::ready:
            break;
    }
    return {};
}

}  // namespace citysplat::gpu
