#pragma once

#include "cuda/scan_launch_hd.hpp"
#include "cuda/splat_columns_hd.hpp"
#include "cuda/trace_params_hd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// What the tracer needs of a GPU, and nothing else. CudaDevice is the real one; the tests bring one that
/// runs the same programs on the CPU and one that fails on demand.
namespace citysplat::gpu {

using DeviceAddress = std::uint64_t;  ///< 0 is no address

/// Work in one queue runs in the order given; queues run beside each other.
enum class Queue : unsigned { load, trace_a, trace_b };
inline constexpr unsigned kQueues = 3;

/// A place in a queue that the host can wait for. Each queue has two; recording one anew forgets where it
/// was.
struct Mark {
    Queue queue;
    unsigned number;  ///< 0 or 1
};
inline constexpr unsigned kMarks = 2;

enum class AccelKind { discs, scene };

struct AccelSizes {
    std::size_t output_bytes, temp_bytes;
};

/// A tile in a scene, laid out as OptixInstance.
struct alignas(16) TileInstance {
    float scene_from_tile[12];  ///< row-major 3 × 4; here always a translation by whole metres
    std::uint32_t slot;         ///< place in TraceParams::tiles; what optixGetInstanceId() tells
    std::uint32_t sbt_offset, visibility_mask, flags;
    std::uint64_t traversable;
    std::uint32_t pad[2];
};
static_assert(sizeof(TileInstance) == 80);

/// One acceleration structure to build. Addresses are multiples of kAccelAlignment.
struct AccelBuild {
    AccelKind kind;
    DeviceAddress input;  ///< DiscBox or TileInstance, `count` of them
    std::uint32_t count;  ///< at least 1
    DeviceAddress output, temp;
    AccelSizes sizes;              ///< of accel_sizes(kind, count)
    DeviceAddress compacted_size;  ///< discs: where the size after compaction is put, as u64
};
inline constexpr std::size_t kAccelAlignment = 128;

enum class TraceKind { closest, nearest };

/// Members may be called from several threads as long as each queue is used by one at a time. Except for
/// wait(), calls with a queue return before the work is done; what they refer to must stay until then.
/// Failures of the device throw UnavailableError, lack of memory ResourceError.
class Device {
  public:
    virtual ~Device() = default;
    virtual std::string description() const = 0;
    virtual std::size_t free_bytes() const = 0;

    /// At least 256-byte aligned. Requires bytes > 0.
    virtual DeviceAddress allocate(std::size_t bytes) = 0;
    virtual void release(DeviceAddress address) noexcept = 0;
    /// Host memory that copies can use without the CPU.
    virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
    virtual void release_pinned(std::byte* memory) noexcept = 0;

    virtual void upload(Queue queue, DeviceAddress to, std::span<const std::byte> pinned) = 0;
    virtual void download(Queue queue, std::span<std::byte> pinned, DeviceAddress from) = 0;
    /// decode_splat() for every splat.
    virtual void decode(Queue queue, const SplatColumns& columns, std::uint32_t count,
                        const DecodedSplats& out) = 0;
    /// generate_ray() and make_return() for every ray.
    virtual void generate_rays(Queue queue, const ScanLaunch& launch) = 0;
    virtual void make_returns(Queue queue, const ScanLaunch& launch) = 0;
    virtual AccelSizes accel_sizes(AccelKind kind, std::uint32_t count) const = 0;
    /// Returns the traversable.
    virtual std::uint64_t build(Queue queue, const AccelBuild& task) = 0;
    virtual std::uint64_t compact(Queue queue, std::uint64_t traversable, DeviceAddress to,
                                  std::size_t bytes) = 0;
    /// Runs the ray generation program for `rays` rays; `params` is the address of a TraceParams.
    virtual void trace(Queue queue, TraceKind kind, DeviceAddress params, std::uint32_t rays) = 0;

    virtual void record(Mark mark) = 0;
    /// Blocks until everything before the mark is done. Returns at once when it was never recorded. This is
    /// where failures of queued work show.
    virtual void wait(Mark mark) = 0;
    /// Blocks until the queue is empty; failures of the work in it are dropped.
    virtual void drain(Queue queue) noexcept = 0;
};

}  // namespace citysplat::gpu
