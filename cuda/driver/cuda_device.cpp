#include "cuda/driver/cuda_device.hpp"

#include "core/error.hpp"
#include "cuda/driver/embedded_code.hpp"
#include "cuda/driver/optix_context.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace citysplat::gpu {

namespace {

/// The CUDA context of a device, with streams, events and the kernels' module. Destroyed in reverse order.
class CudaContext {
  public:
    CudaContext(const DriverApi& driver, int ordinal);
    ~CudaContext();
    CudaContext(const CudaContext&) = delete;
    CudaContext& operator=(const CudaContext&) = delete;

    /// Contexts belong to threads: every call begins with this.
    void enter() const { driver.check(driver.cuCtxSetCurrent(context), "entering its context"); }
    int attribute(CUdevice_attribute which) const;

    const DriverApi driver;
    CUdevice device = 0;
    CUcontext context = nullptr;
    std::array<CUstream, kQueues> streams{};
    std::array<std::array<CUevent, kMarks>, kQueues> events{};
    CUfunction decode_splats = nullptr, generate_rays = nullptr, make_returns = nullptr;
    bool pools = false;

  private:
    void start();
    void load(CUmodule& module, std::string_view ptx);
    CUfunction find(CUmodule module, const char* kernel) const;
    void stop() noexcept;

    CUmodule splat_kernels_ = nullptr, scan_kernels_ = nullptr;
};

CudaContext::CudaContext(const DriverApi& api, int ordinal) : driver(api) {
    driver.check(driver.cuDeviceGet(&device, ordinal), "opening it");
    driver.check(driver.cuDevicePrimaryCtxRetain(&context, device), "making a context");
    try {
        start();
    } catch (...) {
        stop();
        throw;
    }
}

CudaContext::~CudaContext() { stop(); }

void CudaContext::start() {
    enter();
    for (CUstream& stream : streams)
        driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
    for (auto& of_queue : events)
        for (CUevent& event : of_queue)
            driver.check(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC),
                         "making an event");
    load(splat_kernels_, splat_kernels_ptx());
    load(scan_kernels_, scan_kernels_ptx());
    decode_splats = find(splat_kernels_, "decode_splats");
    generate_rays = find(scan_kernels_, "generate_rays");
    make_returns = find(scan_kernels_, "make_returns");
    // Memory that comes back stays with us: eviction and loading then cost no synchronisation of the device.
    pools = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
    if (pools) {
        CUmemoryPool pool = nullptr;
        cuuint64_t keep = std::numeric_limits<cuuint64_t>::max();
        driver.check(driver.cuDeviceGetDefaultMemPool(&pool, device), "finding its memory pool");
        driver.check(driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                     "setting up its memory pool");
    }
}

void CudaContext::load(CUmodule& module, std::string_view ptx) {
    char log[2048] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    const CUresult result = driver.cuModuleLoadDataEx(&module, ptx.data(), 2, options, values);
    if (result != CUDA_SUCCESS)
        throw UnavailableError("the driver cannot compile our kernels (" + driver.text(result) + "): " + log);
}

CUfunction CudaContext::find(CUmodule module, const char* kernel) const {
    CUfunction function = nullptr;
    driver.check(driver.cuModuleGetFunction(&function, module, kernel), "finding a kernel");
    return function;
}

void CudaContext::stop() noexcept {
    driver.cuCtxSetCurrent(context);
    for (CUmodule module : {scan_kernels_, splat_kernels_})
        if (module) driver.cuModuleUnload(module);
    for (auto& of_queue : events)
        for (CUevent event : of_queue)
            if (event) driver.cuEventDestroy(event);
    for (CUstream stream : streams)
        if (stream) driver.cuStreamDestroy(stream);
    driver.cuDevicePrimaryCtxRelease(device);
}

int CudaContext::attribute(CUdevice_attribute which) const {
    int value = 0;
    driver.check(driver.cuDeviceGetAttribute(&value, which, device), "asking for a property");
    return value;
}

class CudaDevice final : public Device {
  public:
    CudaDevice(const DriverApi& driver, int ordinal)
        : cuda_(driver, ordinal),
          optix_(cuda_.driver, cuda_.context, stream(Queue::load), optix_programs_ptx()) {}

    std::string description() const override;
    std::size_t free_bytes() const override;
    DeviceAddress allocate(std::size_t bytes) override;
    void release(DeviceAddress address) noexcept override;
    std::byte* allocate_pinned(std::size_t bytes) override;
    void release_pinned(std::byte* memory) noexcept override;
    void upload(Queue queue, DeviceAddress to, std::span<const std::byte> pinned) override;
    void download(Queue queue, std::span<std::byte> pinned, DeviceAddress from) override;
    void decode(Queue queue, const SplatColumns& columns, std::uint32_t count,
                const DecodedSplats& out) override;
    void generate_rays(Queue queue, const ScanLaunch& launch) override;
    void make_returns(Queue queue, const ScanLaunch& launch) override;
    void record(Mark mark) override;
    void wait(Mark mark) override;
    void drain(Queue queue) noexcept override;

    AccelSizes accel_sizes(AccelKind kind, std::uint32_t count) const override {
        cuda_.enter();
        return optix_.accel_sizes(kind, count);
    }
    std::uint64_t build(Queue queue, const AccelBuild& task) override {
        cuda_.enter();
        return optix_.build(stream(queue), task);
    }
    std::uint64_t compact(Queue queue, std::uint64_t traversable, DeviceAddress to,
                          std::size_t bytes) override {
        cuda_.enter();
        return optix_.compact(stream(queue), traversable, to, bytes);
    }
    void trace(Queue queue, TraceKind kind, DeviceAddress params, std::uint32_t rays) override {
        cuda_.enter();
        optix_.launch(stream(queue), kind, params, rays);
    }

  private:
    /// A thread for each item. The arguments are copied by the call.
    void run(Queue queue, CUfunction kernel, std::uint32_t items, void** arguments, const char* doing);
    CUstream stream(Queue queue) const { return cuda_.streams[static_cast<unsigned>(queue)]; }
    CUevent event(Mark mark) const { return cuda_.events[static_cast<unsigned>(mark.queue)][mark.number]; }

    CudaContext cuda_;
    OptixContext optix_;
};

std::string CudaDevice::description() const {
    char name[256] = {};
    cuda_.driver.check(cuda_.driver.cuDeviceGetName(name, sizeof name, cuda_.device), "asking for its name");
    return std::string("OptiX on ") + name;
}

std::size_t CudaDevice::free_bytes() const {
    cuda_.enter();
    std::size_t free = 0, total = 0;
    cuda_.driver.check(cuda_.driver.cuMemGetInfo(&free, &total), "asking for free memory");
    return free;
}

DeviceAddress CudaDevice::allocate(std::size_t bytes) {
    cuda_.enter();
    CUdeviceptr address = 0;
    const DriverApi& driver = cuda_.driver;
    if (!cuda_.pools) {
        driver.check(driver.cuMemAlloc(&address, bytes), "allocating memory");
        return address;
    }
    driver.check(driver.cuMemAllocAsync(&address, bytes, stream(Queue::load)), "allocating memory");
    // The order of the load queue covers its own work; other queues may use the memory as soon as we return.
    const CUresult result = driver.cuStreamSynchronize(stream(Queue::load));
    if (result != CUDA_SUCCESS) release(address);
    driver.check(result, "allocating memory");
    return address;
}

void CudaDevice::release(DeviceAddress address) noexcept {
    const DriverApi& driver = cuda_.driver;
    driver.cuCtxSetCurrent(cuda_.context);
    if (cuda_.pools)
        driver.cuMemFreeAsync(address, stream(Queue::load));
    else
        driver.cuMemFree(address);
}

std::byte* CudaDevice::allocate_pinned(std::size_t bytes) {
    cuda_.enter();
    void* memory = nullptr;
    cuda_.driver.check(cuda_.driver.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE),
                       "pinning host memory");
    return static_cast<std::byte*>(memory);
}

void CudaDevice::release_pinned(std::byte* memory) noexcept {
    cuda_.driver.cuCtxSetCurrent(cuda_.context);
    cuda_.driver.cuMemFreeHost(memory);
}

void CudaDevice::upload(Queue queue, DeviceAddress to, std::span<const std::byte> pinned) {
    cuda_.enter();
    cuda_.driver.check(cuda_.driver.cuMemcpyHtoDAsync(to, pinned.data(), pinned.size(), stream(queue)),
                       "copying to it");
}

void CudaDevice::download(Queue queue, std::span<std::byte> pinned, DeviceAddress from) {
    cuda_.enter();
    cuda_.driver.check(cuda_.driver.cuMemcpyDtoHAsync(pinned.data(), from, pinned.size(), stream(queue)),
                       "copying from it");
}

void CudaDevice::run(Queue queue, CUfunction kernel, std::uint32_t items, void** arguments,
                     const char* doing) {
    constexpr unsigned kBlock = 256;
    cuda_.enter();
    cuda_.driver.check(cuda_.driver.cuLaunchKernel(kernel, (items + kBlock - 1) / kBlock, 1, 1, kBlock, 1, 1,
                                                   0, stream(queue), arguments, nullptr),
                       doing);
}

void CudaDevice::decode(Queue queue, const SplatColumns& columns, std::uint32_t count,
                        const DecodedSplats& out) {
    SplatColumns columns_argument = columns;
    DecodedSplats out_argument = out;
    void* arguments[] = {&columns_argument, &count, &out_argument};
    run(queue, cuda_.decode_splats, count, arguments, "decoding splats");
}

void CudaDevice::generate_rays(Queue queue, const ScanLaunch& launch) {
    ScanLaunch argument = launch;
    void* arguments[] = {&argument};
    run(queue, cuda_.generate_rays, launch.count, arguments, "generating rays");
}

void CudaDevice::make_returns(Queue queue, const ScanLaunch& launch) {
    ScanLaunch argument = launch;
    void* arguments[] = {&argument};
    run(queue, cuda_.make_returns, launch.count, arguments, "making returns");
}

void CudaDevice::record(Mark mark) {
    cuda_.enter();
    cuda_.driver.check(cuda_.driver.cuEventRecord(event(mark), stream(mark.queue)), "marking a place");
}

void CudaDevice::wait(Mark mark) {
    cuda_.enter();
    cuda_.driver.check(cuda_.driver.cuEventSynchronize(event(mark)), "working on what it was given");
}

void CudaDevice::drain(Queue queue) noexcept {
    cuda_.driver.cuCtxSetCurrent(cuda_.context);
    cuda_.driver.cuStreamSynchronize(stream(queue));
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(const DriverApi& driver, int ordinal) {
    return std::make_unique<CudaDevice>(driver, ordinal);
}

}  // namespace citysplat::gpu
