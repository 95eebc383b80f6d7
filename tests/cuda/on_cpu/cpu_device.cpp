#include "cuda/on_cpu/cpu_device.hpp"

#include "core/error.hpp"
#include "cuda/on_cpu/programs.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace citysplat::on_cpu {

namespace {

constexpr std::align_val_t kAlignment{256};

std::byte* make_memory(std::size_t bytes) {
    auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment));
    std::memset(memory, 0xa5, bytes);
    return memory;
}
void drop_memory(std::byte* memory, std::size_t bytes) {
    std::memset(memory, 0x5a, bytes);
    ::operator delete(memory, kAlignment);
}

std::byte* at(gpu::DeviceAddress address) { return reinterpret_cast<std::byte*>(address); }

std::size_t compacted_bytes(std::uint32_t count) { return 128 + std::size_t{count} * 30; }

}  // namespace

CpuDevice::~CpuDevice() {
    for (auto& [address, bytes] : memory_) drop_memory(at(address), bytes);
    for (auto& [memory, bytes] : pinned_) drop_memory(memory, bytes);
}

bool CpuDevice::fails(const char* what) {
    const bool now = script_->fail_at == script_->calls++;
    if (now) script_->failed = what;
    return now;
}

std::size_t CpuDevice::free_bytes() const {
    const std::lock_guard lock(mutex_);
    return script_->capacity_bytes - script_->live_bytes;
}

gpu::DeviceAddress CpuDevice::allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes == 0) throw std::logic_error("nothing was to be allocated");
    if (fails("allocate") || bytes > free_bytes()) throw ResourceError("the device has no memory left");
    std::byte* memory = make_memory(bytes);
    memory_[reinterpret_cast<gpu::DeviceAddress>(memory)] = bytes;
    script_->live_bytes += bytes;
    script_->peak_bytes = std::max(script_->peak_bytes, script_->live_bytes);
    return reinterpret_cast<gpu::DeviceAddress>(memory);
}

void CpuDevice::release(gpu::DeviceAddress address) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = memory_.find(address);
    if (found == memory_.end()) std::abort();
    forget_accel(at(address));
    script_->live_bytes -= found->second;
    drop_memory(at(address), found->second);
    memory_.erase(found);
}

std::byte* CpuDevice::allocate_pinned(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (fails("allocate_pinned")) throw ResourceError("the host has no memory left to pin");
    std::byte* memory = make_memory(bytes);
    pinned_[memory] = bytes;
    script_->live_pinned += bytes;
    return memory;
}

void CpuDevice::release_pinned(std::byte* memory) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = pinned_.find(memory);
    if (found == pinned_.end()) std::abort();
    script_->live_pinned -= found->second;
    drop_memory(memory, found->second);
    pinned_.erase(found);
}

void CpuDevice::require_pinned(std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    for (const auto& [memory, size] : pinned_)
        if (bytes.data() >= memory && bytes.data() + bytes.size() <= memory + size) return;
    throw std::logic_error("a copy from or to memory that is not pinned");
}

void CpuDevice::queue_work(gpu::Queue queue, const char* what, Work work) {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[static_cast<unsigned>(queue)];
    if (fails(what)) work = [what] { throw UnavailableError(std::string("the device failed: ") + what); };
    line.work.push_back(std::move(work));
    if (!script_->lazy) run(line, line.done + line.work.size());
}

/// After a failure the rest of the queue is skipped, as a lost device does.
void CpuDevice::run(Line& line, std::uint64_t until) {
    while (line.done < until) {
        const Work work = std::move(line.work.front());
        line.work.pop_front();
        ++line.done;
        try {
            if (line.failure.empty()) work();
        } catch (const Error& e) {
            line.failure = e.what();
        }
    }
}

void CpuDevice::upload(gpu::Queue queue, gpu::DeviceAddress to, std::span<const std::byte> pinned) {
    require_pinned(pinned);
    queue_work(queue, "upload", [=, script = script_] {
        std::memcpy(at(to), pinned.data(), pinned.size());
        script->uploaded_bytes += pinned.size();
    });
}

void CpuDevice::download(gpu::Queue queue, std::span<std::byte> pinned, gpu::DeviceAddress from) {
    require_pinned(pinned);
    queue_work(queue, "download", [=, script = script_] {
        std::memcpy(pinned.data(), at(from), pinned.size());
        script->downloaded_bytes += pinned.size();
    });
}

void CpuDevice::decode(gpu::Queue queue, const gpu::SplatColumns& columns, std::uint32_t count,
                       const gpu::DecodedSplats& out) {
    queue_work(queue, "decode", [=] { run_decode_splats(columns, count, out); });
}

void CpuDevice::generate_rays(gpu::Queue queue, const gpu::ScanLaunch& launch) {
    queue_work(queue, "generate_rays", [=] { run_generate_rays(launch); });
}

void CpuDevice::make_returns(gpu::Queue queue, const gpu::ScanLaunch& launch) {
    queue_work(queue, "make_returns", [=] { run_make_returns(launch); });
}

gpu::AccelSizes CpuDevice::accel_sizes(gpu::AccelKind, std::uint32_t count) const {
    return {128 + std::size_t{count} * 60, 1000 + std::size_t{count} * 10};
}

std::uint64_t CpuDevice::build(gpu::Queue queue, const gpu::AccelBuild& task) {
    if (task.output % gpu::kAccelAlignment || task.temp % gpu::kAccelAlignment)
        throw std::logic_error("acceleration structures want aligned memory");
    queue_work(queue, "build", [this, task] {
        auto accel = std::make_shared<Accel>();
        if (task.kind == gpu::AccelKind::discs) {
            accel->discs = std::make_unique<BoxTree>(
                std::span(reinterpret_cast<const gpu::DiscBox*>(task.input), task.count));
            const std::uint64_t bytes =
                script_->compacts ? compacted_bytes(task.count) : task.sizes.output_bytes;
            std::memcpy(at(task.compacted_size), &bytes, sizeof bytes);
        } else {
            const auto* first = reinterpret_cast<const gpu::TileInstance*>(task.input);
            accel->instances.assign(first, first + task.count);
        }
        std::memset(at(task.temp), 0x77, task.sizes.temp_bytes);
        std::memset(at(task.output), 0x77, task.sizes.output_bytes);
        put_accel(at(task.output), std::move(accel));
    });
    return task.output;
}

std::uint64_t CpuDevice::compact(gpu::Queue queue, std::uint64_t traversable, gpu::DeviceAddress to,
                                 std::size_t bytes) {
    queue_work(queue, "compact", [=] {
        std::memset(at(to), 0x77, bytes);
        put_accel(at(to), share_accel(traversable));
    });
    return to;
}

void CpuDevice::trace(gpu::Queue queue, gpu::TraceKind kind, gpu::DeviceAddress params, std::uint32_t rays) {
    queue_work(queue, "trace", [=, script = script_] {
        gpu::TraceParams copy;
        std::memcpy(&copy, at(params), sizeof copy);
        launch(kind, copy, rays, script->manners);
        script->launches++;
        script->rays += rays;
    });
}

void CpuDevice::record(gpu::Mark mark) {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[static_cast<unsigned>(mark.queue)];
    line.marks.at(mark.number) = line.done + line.work.size();
}

void CpuDevice::wait(gpu::Mark mark) {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[static_cast<unsigned>(mark.queue)];
    run(line, line.marks.at(mark.number));
    if (!line.failure.empty()) throw UnavailableError(std::exchange(line.failure, {}));
}

void CpuDevice::drain(gpu::Queue queue) noexcept {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[static_cast<unsigned>(queue)];
    run(line, line.done + line.work.size());
    line.failure.clear();
}

}  // namespace citysplat::on_cpu
