// Takes the place of find_gpu.cpp in programs that were built without CUDA or without the OptiX headers.
#include "cuda/find_gpu.hpp"

namespace citysplat::gpu {

trace::GpuOffer find_gpu() {
    return {
        "this program was built without the GPU backend, which needs the CUDA Toolkit and the OptiX "
        "headers (docs/gpu.md)",
        "", nullptr};
}

}  // namespace citysplat::gpu
