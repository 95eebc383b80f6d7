#include "cuda/driver/driver_api.hpp"

#include "core/error.hpp"

#include <dlfcn.h>

namespace citysplat::gpu {

namespace {

#define CITYSPLAT_TEXT_OF(name) #name
#define CITYSPLAT_SYMBOL(name) CITYSPLAT_TEXT_OF(name)

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

}  // namespace

std::string DriverApi::load() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return ::dlerror();
#define X(name)                                             \
    if (!find(library, CITYSPLAT_SYMBOL(name), this->name)) \
        return "libcuda.so.1 lacks " CITYSPLAT_SYMBOL(name);
#include "cuda/driver/driver_functions.inc"
#undef X
    return {};
}

std::string DriverApi::text(CUresult result) const {
    const char *name = nullptr, *words = nullptr;
    this->cuGetErrorName(result, &name);
    this->cuGetErrorString(result, &words);
    if (!name || !words) return "CUDA error " + std::to_string(result);
    return std::string(name) + ": " + words;
}

void DriverApi::check(CUresult result, const char* doing) const {
    if (result == CUDA_SUCCESS) return;
    const std::string message = std::string("the GPU failed while ") + doing + " (" + text(result) + ")";
    if (result == CUDA_ERROR_OUT_OF_MEMORY) throw ResourceError(message);
    throw UnavailableError(message);
}

}  // namespace citysplat::gpu
