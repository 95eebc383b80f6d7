// A libcuda.so.1 for machines without a GPU: device memory is host memory, queued work is done at once, and
// the kernels run on the CPU. Tests put it before the program with LD_LIBRARY_PATH. What it pretends to
// be is set by environment variables: CITYSPLAT_FAKE_CUDA (13000), CITYSPLAT_FAKE_DEVICES (1),
// CITYSPLAT_FAKE_CAPABILITY (89), CITYSPLAT_FAKE_POOLS (1), CITYSPLAT_FAKE_MEMORY (bytes),
// CITYSPLAT_FAKE_FAIL (name of a call that fails).
#include "cuda/on_cpu/programs.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

using namespace citysplat;

namespace {

long long number(const char* variable, long long otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::atoll(text) : otherwise;
}

bool fails(const char* call) {
    const char* text = std::getenv("CITYSPLAT_FAKE_FAIL");
    return text && std::string_view(text) == call;
}

struct Memory {
    std::mutex mutex;
    std::map<unsigned long long, std::size_t> blocks;
    std::size_t used = 0;
};
Memory& memory() {
    static Memory m;
    return m;
}

std::size_t total_bytes() { return static_cast<std::size_t>(number("CITYSPLAT_FAKE_MEMORY", 2'000'000'000)); }

CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    if (m.used + bytes > total_bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<CUdeviceptr>(::operator new (bytes, std::align_val_t{256}));
    m.blocks[*address] = bytes;
    m.used += bytes;
    return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr address) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    const auto found = m.blocks.find(address);
    if (found == m.blocks.end()) return CUDA_ERROR_INVALID_VALUE;
    m.used -= found->second;
    m.blocks.erase(found);
    ::operator delete (reinterpret_cast<void*>(address), std::align_val_t{256});
    return CUDA_SUCCESS;
}

thread_local CUcontext g_current = nullptr;
template <class T>
T handle(unsigned long long n) {
    return reinterpret_cast<T>(n);
}
/// Most calls need a context on their thread; forgetting that works until a second thread comes.
CUresult in_context(CUresult result = CUDA_SUCCESS) {
    return g_current ? result : CUDA_ERROR_INVALID_CONTEXT;
}

/// What cuLaunchKernel() can run, and how many threads that takes.
struct Kernel {
    const char* name;
    std::uint32_t (*items)(void** arguments);
    void (*run)(void** arguments);
};
template <class T>
const T& argument(void** arguments, int i) {
    return *static_cast<const T*>(arguments[i]);
}
std::uint32_t launch_items(void** arguments) { return argument<gpu::ScanLaunch>(arguments, 0).count; }
const Kernel kKernels[] = {
    {"decode_splats", [](void** a) { return argument<std::uint32_t>(a, 1); },
     [](void** a) {
         on_cpu::run_decode_splats(argument<gpu::SplatColumns>(a, 0), argument<std::uint32_t>(a, 1),
                                   argument<gpu::DecodedSplats>(a, 2));
     }},
    {"generate_rays", launch_items,
     [](void** a) { on_cpu::run_generate_rays(argument<gpu::ScanLaunch>(a, 0)); }},
    {"make_returns", launch_items,
     [](void** a) { on_cpu::run_make_returns(argument<gpu::ScanLaunch>(a, 0)); }},
};

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
    return number("CITYSPLAT_FAKE_DEVICES", 1) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
CUresult cuDriverGetVersion(int* version) {
    *version = static_cast<int>(number("CITYSPLAT_FAKE_CUDA", CUDA_VERSION));
    return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
    *text = "as the test wanted";
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
    *count = static_cast<int>(number("CITYSPLAT_FAKE_DEVICES", 1));
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
    std::snprintf(name, static_cast<std::size_t>(size), "Pretended GPU");
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
    const int capability = static_cast<int>(number("CITYSPLAT_FAKE_CAPABILITY", 89));
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? capability / 10
             : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
                 ? capability % 10
                 : static_cast<int>(number("CITYSPLAT_FAKE_POOLS", 1));
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
    *context = handle<CUcontext>(1);
    return fails("cuDevicePrimaryCtxRetain") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
/// The last call of a well-behaved program: all memory has come back by now.
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
    if (!memory().blocks.empty()) {
        std::fprintf(stderr, "%zu blocks of device memory were not given back\n", memory().blocks.size());
        std::abort();
    }
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
    g_current = context;
    return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t* free, size_t* total) {
    *total = total_bytes();
    *free = *total - memory().used;
    return in_context();
}
CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
    return g_current ? allocate(address, bytes) : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuMemFree(CUdeviceptr address) { return release(address); }
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) { return cuMemAlloc(address, bytes); }
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return release(address); }
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) {
    *pool = handle<CUmemoryPool>(2);
    return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void*) { return in_context(); }
CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
    *pointer = std::malloc(bytes);
    return in_context();
}
CUresult cuMemFreeHost(void* pointer) {
    std::free(pointer);
    return in_context();
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
    if (fails("cuMemcpyHtoDAsync")) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return in_context();
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream) {
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return in_context();
}
CUresult cuStreamCreate(CUstream* stream, unsigned) {
    *stream = handle<CUstream>(3);
    return in_context();
}
CUresult cuStreamDestroy(CUstream) { return in_context(); }
CUresult cuStreamSynchronize(CUstream) { return in_context(); }
CUresult cuEventCreate(CUevent* event, unsigned) {
    *event = handle<CUevent>(4);
    return fails("cuEventCreate") ? CUDA_ERROR_UNKNOWN : in_context();
}
CUresult cuEventDestroy(CUevent) { return in_context(); }
CUresult cuEventRecord(CUevent, CUstream) { return in_context(); }
CUresult cuEventSynchronize(CUevent) {
    return fails("cuEventSynchronize") ? CUDA_ERROR_LAUNCH_FAILED : in_context();
}
/// A module is its PTX, a function one of kKernels.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned options, CUjit_option* keys,
                            void** values) {
    const char* ptx = static_cast<const char*>(image);
    if (fails("cuModuleLoadDataEx") || !std::strstr(ptx, ".entry ")) {
        if (options > 0 && keys[0] == CU_JIT_ERROR_LOG_BUFFER)
            std::strcpy(static_cast<char*>(values[0]), "unknown instruction");
        return CUDA_ERROR_INVALID_PTX;
    }
    *module = reinterpret_cast<CUmodule>(const_cast<char*>(ptx));
    return in_context();
}
CUresult cuModuleUnload(CUmodule) { return in_context(); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    const std::string entry = std::string(".entry ") + name + "(";
    if (!std::strstr(reinterpret_cast<const char*>(module), entry.c_str())) return CUDA_ERROR_NOT_FOUND;
    for (const Kernel& kernel : kKernels)
        if (kernel.name == std::string_view(name)) {
            *function = reinterpret_cast<CUfunction>(const_cast<Kernel*>(&kernel));
            return in_context();
        }
    return CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                        unsigned, unsigned, CUstream, void** arguments, void**) {
    const Kernel& kernel = *reinterpret_cast<const Kernel*>(function);
    const std::uint32_t items = kernel.items(arguments);
    if (blocks * threads < items || (blocks - 1) * threads >= items) return CUDA_ERROR_INVALID_VALUE;
    if (fails(kernel.name)) return CUDA_ERROR_LAUNCH_FAILED;
    kernel.run(arguments);
    return in_context();
}

}  // extern "C"
