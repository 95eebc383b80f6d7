#pragma once

#include "cuda/tile_loader.hpp"
#include "sim/scan/scan_tracer.hpp"

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
};

/// Up to `depth` hits of a surface, as Tracer::nearest() means it.
TraceTask nearest_task(std::uint32_t depth, float gap_m);

/// What rays are sent through. Must stay until they are back.
struct SceneOnDevice {
    const LoadedScene& tiles;
    const LoadedParts& parts;
};

/// Sends batches of rays through a bound scene and brings back their hits, or fires the batches of a scan and
/// brings back their returns.
///
/// Protocol: there are two benches, each with a queue, pinned memory and device memory of its own. A batch
/// takes a bench, fills it, and queues its work: copy – launch – copy for rays; for scans poses and firings
/// go up, then rays are generated, traced and made into returns, which alone come back. What came back is
/// read when the bench's mark is reached. A call keeps both benches busy if it can get them, so that the
/// copies of one batch run beside the launch of the other. It never waits for a bench while it has one that
/// it has not read: two calls cannot block each other.
class BatchTracer {
  public:
    /// `batch_hits` rays, or hits where each ray has several, go in one launch.
    BatchTracer(Device& device, DeviceMemory& memory, std::size_t batch_hits);

    /// Writes rays first … first + out.size() − 1 of the call, to be traced as they are.
    using Prepare = std::function<void(std::size_t first, std::span<trace::Ray> out)>;
    /// Takes the hits of rays `first` …: `depth` for each, in order; the first that does not exist ends them.
    using Receive = std::function<void(std::size_t first, std::span<const trace::Hit> hits)>;
    /// Calls both for all rays in order. Safe to call from several threads. Requires a scene with tiles or
    /// parts.
    void trace(const SceneOnDevice& scene, std::size_t rays, const TraceTask& task, const Prepare& prepare,
               const Receive& receive);

    /// Takes the returns of firings `first` … of the scan, in their order.
    using ReceiveReturns = std::function<void(std::size_t first, std::span<const sim::Return> returns)>;
    /// Calls it for all firings of the part in order. Safe to call from several threads. A scene without
    /// tiles is allowed.
    void scan(const SceneOnDevice& scene, const sim::ScanPart& part, const ReceiveReturns& receive);

    std::size_t batch_hits() const { return batch_hits_; }

  private:
    struct Bench {
        Queue queue;
        PinnedBuffer host;      ///< what is copied of RayPlaces or ScanPlaces
        DeviceBuffer device;    ///< all of them
        std::size_t first = 0;  ///< the rays of the call that are here
        std::uint32_t count = 0;
        bool taken = false;
    };
    class Call;

    Bench* take(bool wait);
    void put_back(Bench& bench);
    /// Cuts `count` items into batches: submit(bench) for each, and when its work is done collect(bench).
    template <class Submit, class Collect>
    void run(std::size_t count, std::size_t batch, const Submit& submit, const Collect& collect);
    void submit_rays(Bench& bench, const SceneOnDevice& scene, const TraceTask& task, const Prepare& prepare);
    void submit_scan(Bench& bench, const SceneOnDevice& scene, const sim::ScanPart& part);
    /// `count` values that came back to the bench.
    template <class T>
    std::span<const T> result(const Bench& bench, std::size_t offset, std::size_t count) const;
    std::size_t batch_rays(std::uint32_t depth) const;

    Device& device_;
    const std::size_t batch_hits_;
    std::array<Bench, 2> benches_;
    std::mutex mutex_;
    std::condition_variable free_;
};

}  // namespace citysplat::gpu
