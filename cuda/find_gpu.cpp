#include "cuda/find_gpu.hpp"

#include "cuda/driver/cuda_device.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/driver/optix_context.hpp"
#include "cuda/gpu_facts.hpp"
#include "cuda/optix_tracer.hpp"

namespace citysplat::gpu {

namespace {

constexpr int kDevice = 0;  // CUDA_VISIBLE_DEVICES decides which one that is

void ask_driver(const DriverApi& driver, GpuFacts& facts) {
    facts.needed_cuda = CUDA_VERSION;
    driver.cuDriverGetVersion(&facts.driver_cuda);
    if (facts.driver_cuda < facts.needed_cuda) return;
    const CUresult started = driver.cuInit(0);
    if (started == CUDA_ERROR_NO_DEVICE) return;
    if (started != CUDA_SUCCESS) {
        facts.driver_failure = driver.text(started);
        return;
    }
    CUdevice device = 0;
    int major = 0, minor = 0;
    char name[256] = {};
    driver.cuDeviceGetCount(&facts.devices);
    if (facts.devices == 0) return;
    driver.cuDeviceGet(&device, kDevice);
    driver.cuDeviceGetName(name, sizeof name, device);
    driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    facts.device = name;
    facts.capability = 10 * major + minor;
}

void ask_optix(GpuFacts& facts) {
    facts.needed_optix_abi = OPTIX_ABI_VERSION;
    facts.optix_version = std::to_string(OPTIX_VERSION / 10000) + "." +
                          std::to_string(OPTIX_VERSION % 10000 / 100) + "." +
                          std::to_string(OPTIX_VERSION % 100);
    const OptixResult result = OptixContext::initialise();
    if (result == OPTIX_SUCCESS) return;
    facts.optix_failure = OptixContext::text(result);
    facts.optix = result == OPTIX_ERROR_LIBRARY_NOT_FOUND         ? GpuFacts::Optix::library_missing
                  : result == OPTIX_ERROR_UNSUPPORTED_ABI_VERSION ? GpuFacts::Optix::too_old
                                                                  : GpuFacts::Optix::failed;
}

}  // namespace

trace::GpuOffer find_gpu() {
    GpuFacts facts;
    DriverApi driver;
    facts.driver_missing = driver.load();
    if (facts.driver_missing.empty()) ask_driver(driver, facts);
    if (refusal(facts).empty()) ask_optix(facts);
    return {refusal(facts), facts.device,
            [driver] { return make_optix_tracer(make_cuda_device(driver, kDevice)); }};
}

}  // namespace citysplat::gpu
