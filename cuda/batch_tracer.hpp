#pragma once

#include "cuda/tile_loader.hpp"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

namespace citysplat::gpu {

struct TraceTask {
    TraceKind kind = TraceKind::closest;
    std::uint32_t depth = 1;  ///< hits kept for each ray
    float reach_m = 0;        ///< nearest only
    std::uint32_t frame = kAllFrames;
};

/// Sends batches of rays through a bound scene and brings their hits back.
///
/// Protocol: there are two benches, each with a queue, pinned memory and device memory of its own. A batch
/// takes a bench, fills it, and queues copy – launch – copy; the hits are read when the bench's mark is
/// reached. A call keeps both benches busy if it can get them, so that the copies of one batch run beside the
/// launch of the other. It never waits for a bench while it has one whose hits it has not read: two calls
/// cannot block each other.
class BatchTracer {
  public:
    /// `batch_hits` rays, or hits where each ray has several, go in one launch.
    BatchTracer(Device& device, DeviceMemory& memory, std::size_t batch_hits);

    /// Writes rays first … first + out.size() − 1 of the call, to be traced as they are.
    using Prepare = std::function<void(std::size_t first, std::span<sim::Ray> out)>;
    /// Takes the hits of rays `first` …: `depth` for each, in order; the first that does not exist ends them.
    using Receive = std::function<void(std::size_t first, std::span<const sim::Hit> hits)>;
    /// Calls both for all rays in order. Safe to call from several threads. Requires a scene with tiles.
    void trace(const LoadedScene& scene, std::size_t rays, const TraceTask& task, const Prepare& prepare,
               const Receive& receive);

    std::size_t batch_hits() const { return batch_hits_; }

  private:
    struct Bench {
        Queue queue;
        PinnedBuffer host;      ///< parameters, rays; then hits
        DeviceBuffer device;    ///< the same
        std::size_t first = 0;  ///< the rays of the call that are here
        std::uint32_t count = 0;
        bool taken = false;
    };
    class Call;

    Bench* take(bool wait);
    void put_back(Bench& bench);
    void submit(Bench& bench, const LoadedScene& scene, const TraceTask& task, const Prepare& prepare);
    std::span<const sim::Hit> hits(Bench& bench, const TraceTask& task);

    Device& device_;
    const std::size_t batch_hits_;
    std::array<Bench, 2> benches_;
    std::mutex mutex_;
    std::condition_variable free_;
};

}  // namespace citysplat::gpu
