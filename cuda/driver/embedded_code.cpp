#include "cuda/driver/embedded_code.hpp"

// Defined in embedded_code.S; each text ends with a zero byte.
extern "C" {
extern const char citysplat_splat_kernels_begin[], citysplat_splat_kernels_end[];
extern const char citysplat_scan_kernels_begin[], citysplat_scan_kernels_end[];
extern const char citysplat_optix_programs_begin[], citysplat_optix_programs_end[];
}

namespace citysplat::gpu {

namespace {

std::string_view between(const char* begin, const char* end) {
    return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::string_view splat_kernels_ptx() {
    return between(citysplat_splat_kernels_begin, citysplat_splat_kernels_end);
}
std::string_view scan_kernels_ptx() {
    return between(citysplat_scan_kernels_begin, citysplat_scan_kernels_end);
}
std::string_view optix_programs_ptx() {
    return between(citysplat_optix_programs_begin, citysplat_optix_programs_end);
}

}  // namespace citysplat::gpu
