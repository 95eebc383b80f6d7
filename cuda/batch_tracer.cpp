#include "cuda/batch_tracer.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>

namespace citysplat::gpu {

namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

constexpr std::size_t kParamsBytes = 256;
static_assert(sizeof(TraceParams) <= kParamsBytes);

/// Where things are in a bench that traces rays. The same on host and device.
struct RayPlaces {
    explicit RayPlaces(std::size_t batch_hits)
        : hits(rays + batch_hits * sizeof(trace::Ray)), end(hits + batch_hits * sizeof(trace::Hit)) {}
    std::size_t rays = kParamsBytes;
    std::size_t hits, end;
};

/// Where things are in a bench that makes a scan. What lies behind `host_end` never leaves the device.
struct ScanPlaces {
    explicit ScanPlaces(std::size_t batch_hits)
        : returns(aligned(firings + batch_hits * sizeof(sim::Firing))),
          host_end(aligned(returns + batch_hits * sizeof(sim::Return))),
          rays(host_end),
          hits(rays + batch_hits * sizeof(trace::Ray)),
          end(hits + batch_hits * sizeof(trace::Hit)) {}
    std::size_t keys = kParamsBytes;
    std::size_t firings = aligned(keys + (sim::kPoseKeys + 1) * sizeof(sim::PoseKey));
    std::size_t returns, host_end, rays, hits, end;
};

template <class T>
T* at(DeviceAddress address) {
    return reinterpret_cast<T*>(address);
}

template <class T>
void put(std::byte* to, std::span<const T> values) {
    std::memcpy(to, values.data(), values.size_bytes());
}

/// The launch with everything but its rays and hits.
TraceParams params_for(const SceneOnDevice& scene, const TraceTask& task) {
    return {scene.tiles.scenes(),
            {scene.tiles.tiles(), scene.parts.views()},
            nullptr,
            nullptr,
            scene.tiles.scene_count,
            scene.parts.count,
            {task.depth, task.reach_m}};
}

}  // namespace

TraceTask nearest_task(std::uint32_t depth, float gap_m) {
    return {TraceKind::nearest, depth, static_cast<float>(depth - 1) * gap_m};
}

BatchTracer::BatchTracer(Device& device, DeviceMemory& memory, std::size_t batch_hits)
    : device_(device), batch_hits_(batch_hits) {
    constexpr std::array queues{Queue::trace_a, Queue::trace_b};
    for (std::size_t i = 0; i < benches_.size(); ++i) {
        benches_[i].queue = queues[i];
        const RayPlaces rays(batch_hits);
        const ScanPlaces scan(batch_hits);
        benches_[i].host = PinnedBuffer(device, std::max(rays.end, scan.host_end));
        benches_[i].device = memory.allocate(MemoryUse::batch, std::max(rays.end, scan.end));
    }
}

BatchTracer::Bench* BatchTracer::take(bool wait) {
    std::unique_lock lock(mutex_);
    for (;;) {
        for (Bench& bench : benches_)
            if (!bench.taken) {
                bench.taken = true;
                return &bench;
            }
        if (!wait) return nullptr;
        free_.wait(lock);
    }
}

void BatchTracer::put_back(Bench& bench) {
    {
        const std::lock_guard lock(mutex_);
        bench.taken = false;
    }
    free_.notify_one();
}

/// The benches a call holds, oldest batch first. Leaving by exception, they are given back when idle.
class BatchTracer::Call {
  public:
    explicit Call(BatchTracer& tracer) : tracer_(tracer) {}
    ~Call() {
        for (Bench* bench : held_) {
            tracer_.device_.drain(bench->queue);
            tracer_.put_back(*bench);
        }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    bool idle() const { return held_.empty(); }
    /// nullptr when none is free and this call holds one already.
    Bench* take() {
        Bench* bench = tracer_.take(idle());
        if (bench) held_.push_back(bench);
        return bench;
    }
    Bench& oldest() { return *held_.front(); }
    void put_back_oldest() {
        Bench* bench = held_.front();
        held_.pop_front();
        tracer_.put_back(*bench);
    }

  private:
    BatchTracer& tracer_;
    std::deque<Bench*> held_;
};

std::size_t BatchTracer::batch_rays(std::uint32_t depth) const {
    return std::max<std::size_t>(1, batch_hits_ / depth);
}

template <class Submit, class Collect>
void BatchTracer::run(std::size_t count, std::size_t batch, const Submit& submit, const Collect& collect) {
    Call call(*this);
    std::size_t next = 0;
    while (next < count || !call.idle()) {
        if (Bench* bench = next < count ? call.take() : nullptr) {
            bench->first = next;
            bench->count = static_cast<std::uint32_t>(std::min(batch, count - next));
            next += bench->count;
            submit(*bench);
            device_.record({bench->queue, 0});
        } else {
            device_.wait({call.oldest().queue, 0});
            collect(call.oldest());
            call.put_back_oldest();
        }
    }
}

template <class T>
std::span<const T> BatchTracer::result(const Bench& bench, std::size_t offset, std::size_t count) const {
    return {reinterpret_cast<const T*>(bench.host.bytes().data() + offset), count};
}

void BatchTracer::trace(const SceneOnDevice& scene, std::size_t rays, const TraceTask& task,
                        const Prepare& prepare, const Receive& receive) {
    assert(scene.tiles.scene_count + scene.parts.count > 0 && task.depth >= 1 &&
           task.depth <= trace::kMaxHits);
    run(
        rays, batch_rays(task.depth), [&](Bench& bench) { submit_rays(bench, scene, task, prepare); },
        [&](Bench& bench) {
            receive(bench.first, result<trace::Hit>(bench, RayPlaces(batch_hits_).hits,
                                                    std::size_t{bench.count} * task.depth));
        });
}

void BatchTracer::submit_rays(Bench& bench, const SceneOnDevice& scene, const TraceTask& task,
                              const Prepare& prepare) {
    const RayPlaces places(batch_hits_);
    const DeviceAddress base = bench.device.address();
    TraceParams params = params_for(scene, task);
    params.rays = at<const trace::Ray>(base + places.rays);
    params.hits = at<trace::Hit>(base + places.hits);
    std::byte* host = bench.host.bytes().data();
    std::memcpy(host, &params, sizeof params);
    const std::span rays(reinterpret_cast<trace::Ray*>(host + places.rays), bench.count);
    prepare(bench.first, rays);
    device_.upload(bench.queue, base, bench.host.first(places.rays + rays.size_bytes()));
    device_.trace(bench.queue, task.kind, base, bench.count);
    device_.download(bench.queue,
                     bench.host.bytes().subspan(places.hits, rays.size() * task.depth * sizeof(trace::Hit)),
                     base + places.hits);
}

void BatchTracer::scan(const SceneOnDevice& scene, const sim::ScanPart& part, const ReceiveReturns& receive) {
    assert(part.scan.model.depth >= 1 && part.scan.model.depth <= trace::kMaxHits);
    run(
        part.count, batch_rays(part.scan.model.depth), [&](Bench& bench) { submit_scan(bench, scene, part); },
        [&](Bench& bench) {
            receive(part.first + bench.first,
                    result<sim::Return>(bench, ScanPlaces(batch_hits_).returns, bench.count));
        });
}

void BatchTracer::submit_scan(Bench& bench, const SceneOnDevice& scene, const sim::ScanPart& part) {
    const ScanPlaces places(batch_hits_);
    const DeviceAddress base = bench.device.address();
    const sim::ReturnModel& model = part.scan.model;
    const TraceTask task = model.depth > 1 ? nearest_task(model.depth, model.gap_m) : TraceTask{};
    ScanLaunch launch{part.scan,
                      static_cast<std::uint32_t>(part.first + bench.first),
                      bench.count,
                      at<trace::Ray>(base + places.rays),
                      at<const trace::Hit>(base + places.hits),
                      at<sim::Return>(base + places.returns)};
    TraceParams params = params_for(scene, task);
    params.rays = launch.rays;
    params.hits = at<trace::Hit>(base + places.hits);

    std::byte* host = bench.host.bytes().data();
    std::memcpy(host, &params, sizeof params);
    put(host + places.keys, std::span(part.scan.keys, sim::kPoseKeys + 1));
    launch.scan.keys = at<const sim::PoseKey>(base + places.keys);
    std::size_t filled = places.firings;
    if (part.scan.firings.kind == sim::FiringPlan::Kind::list) {
        const std::span firings(part.scan.firings.list + launch.first, bench.count);
        put(host + places.firings, firings);
        launch.scan.firings.list = at<const sim::Firing>(base + places.firings);
        launch.first = 0;
        filled += firings.size_bytes();
    }
    device_.upload(bench.queue, base, bench.host.first(filled));
    device_.generate_rays(bench.queue, launch);
    device_.trace(bench.queue, task.kind, base, bench.count);
    device_.make_returns(bench.queue, launch);
    device_.download(bench.queue,
                     bench.host.bytes().subspan(places.returns, bench.count * sizeof(sim::Return)),
                     base + places.returns);
}

}  // namespace citysplat::gpu
