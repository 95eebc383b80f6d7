#include "cuda/embedded_code.hpp"

// Defined in embedded_code.S; each text ends with a zero byte.
extern "C" {
extern const char citysplat_kernels_begin[], citysplat_kernels_end[];
extern const char citysplat_programs_begin[], citysplat_programs_end[];
}

namespace citysplat::gpu {

namespace {

std::string_view between(const char* begin, const char* end) {
    return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::string_view kernels_ptx() { return between(citysplat_kernels_begin, citysplat_kernels_end); }
std::string_view programs_ptx() { return between(citysplat_programs_begin, citysplat_programs_end); }

}  // namespace citysplat::gpu
