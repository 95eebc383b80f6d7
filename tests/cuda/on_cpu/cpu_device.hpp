#pragma once

#include "cuda/device.hpp"
#include "cuda/on_cpu/traversal.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace citysplat::on_cpu {

/// What the device did and what it shall fail to do. Shared with the test, since the tracer owns the device.
struct Script {
    Manners manners;
    /// Queued work runs as late as the contract allows: when the host waits for it. Otherwise at once.
    bool lazy = true;
    /// This call to the device (counted from 0) fails: allocations for lack of memory, work in a queue when
    /// the host waits for it, everything else at once.
    std::optional<std::uint64_t> fail_at;
    std::size_t capacity_bytes = std::size_t{1} << 30;
    bool compacts = true;  ///< false: compaction would save nothing

    std::uint64_t calls = 0;
    std::string failed;  ///< what failed
    std::size_t live_bytes = 0, live_pinned = 0, peak_bytes = 0;
    std::uint64_t launches = 0, rays = 0;
    std::uint64_t uploaded_bytes = 0, downloaded_bytes = 0;
};

/// A gpu::Device that runs the device code on the CPU. Device memory is host memory of its own, filled with
/// rubbish before use and after, so that AddressSanitizer and the comparison of results see misuse.
class CpuDevice final : public gpu::Device {
  public:
    explicit CpuDevice(std::shared_ptr<Script> script) : script_(std::move(script)) {}
    ~CpuDevice() override;

    std::string description() const override { return "the programs on the CPU"; }
    std::size_t free_bytes() const override;
    gpu::DeviceAddress allocate(std::size_t bytes) override;
    void release(gpu::DeviceAddress address) noexcept override;
    std::byte* allocate_pinned(std::size_t bytes) override;
    void release_pinned(std::byte* memory) noexcept override;
    void upload(gpu::Queue queue, gpu::DeviceAddress to, std::span<const std::byte> pinned) override;
    void download(gpu::Queue queue, std::span<std::byte> pinned, gpu::DeviceAddress from) override;
    void decode(gpu::Queue queue, const gpu::SplatColumns& columns, std::uint32_t count,
                const gpu::DecodedSplats& out) override;
    void generate_rays(gpu::Queue queue, const gpu::ScanLaunch& launch) override;
    void make_returns(gpu::Queue queue, const gpu::ScanLaunch& launch) override;
    gpu::AccelSizes accel_sizes(gpu::AccelKind kind, std::uint32_t count) const override;
    std::uint64_t build(gpu::Queue queue, const gpu::AccelBuild& task) override;
    std::uint64_t compact(gpu::Queue queue, std::uint64_t traversable, gpu::DeviceAddress to,
                          std::size_t bytes) override;
    void trace(gpu::Queue queue, gpu::TraceKind kind, gpu::DeviceAddress params, std::uint32_t rays) override;
    void record(gpu::Mark mark) override;
    void wait(gpu::Mark mark) override;
    void drain(gpu::Queue queue) noexcept override;

  private:
    using Work = std::function<void()>;
    struct Line {
        std::deque<Work> work;
        std::uint64_t done = 0;
        std::array<std::uint64_t, gpu::kMarks> marks{};
        std::string failure;  ///< of work done, not yet told
    };

    /// Counts a call; throws or returns true when it is the one to fail.
    bool fails(const char* what);
    void queue_work(gpu::Queue queue, const char* what, Work work);
    void run(Line& line, std::uint64_t until);
    void require_pinned(std::span<const std::byte> bytes);

    std::shared_ptr<Script> script_;
    mutable std::recursive_mutex mutex_;
    std::map<gpu::DeviceAddress, std::size_t> memory_;
    std::map<std::byte*, std::size_t> pinned_;
    std::array<Line, gpu::kQueues> lines_;
};

}  // namespace citysplat::on_cpu
