#include "cuda/batch_tracer.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>

namespace citysplat::gpu {

namespace {

constexpr std::size_t kParamsBytes = 256;  // keeps the rays behind them aligned
static_assert(sizeof(TraceParams) <= kParamsBytes);

std::size_t rays_offset() { return kParamsBytes; }
std::size_t hits_offset(std::size_t batch) { return kParamsBytes + batch * sizeof(sim::Ray); }
std::size_t bench_bytes(std::size_t batch) { return hits_offset(batch) + batch * sizeof(sim::Hit); }

}  // namespace

BatchTracer::BatchTracer(Device& device, DeviceMemory& memory, std::size_t batch_hits)
    : device_(device), batch_hits_(batch_hits) {
    constexpr std::array queues{Queue::trace_a, Queue::trace_b};
    for (std::size_t i = 0; i < benches_.size(); ++i) {
        benches_[i].queue = queues[i];
        benches_[i].host = PinnedBuffer(device, bench_bytes(batch_hits));
        benches_[i].device = memory.allocate(MemoryUse::batch, bench_bytes(batch_hits));
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

void BatchTracer::trace(const LoadedScene& scene, std::size_t rays, const TraceTask& task,
                        const Prepare& prepare, const Receive& receive) {
    assert(scene.scene_count > 0 && task.depth >= 1 && task.depth <= sim::kMaxHits);
    const std::size_t batch = std::max<std::size_t>(1, batch_hits_ / task.depth);
    Call call(*this);
    std::size_t next = 0;
    while (next < rays || !call.idle()) {
        if (Bench* bench = next < rays ? call.take() : nullptr) {
            bench->first = next;
            bench->count = static_cast<std::uint32_t>(std::min(batch, rays - next));
            next += bench->count;
            submit(*bench, scene, task, prepare);
        } else {
            receive(call.oldest().first, hits(call.oldest(), task));
            call.put_back_oldest();
        }
    }
}

void BatchTracer::submit(Bench& bench, const LoadedScene& scene, const TraceTask& task,
                         const Prepare& prepare) {
    const DeviceAddress base = bench.device.address();
    const TraceParams params{scene.scenes(),
                             scene.tiles(),
                             reinterpret_cast<const sim::Ray*>(base + rays_offset()),
                             reinterpret_cast<sim::Hit*>(base + hits_offset(batch_hits_)),
                             scene.scene_count,
                             task.depth,
                             task.reach_m,
                             task.frame};
    std::byte* host = bench.host.bytes().data();
    std::memcpy(host, &params, sizeof params);
    const std::span rays(reinterpret_cast<sim::Ray*>(host + rays_offset()), bench.count);
    prepare(bench.first, rays);
    device_.upload(bench.queue, base, bench.host.first(rays_offset() + rays.size_bytes()));
    device_.trace(bench.queue, task.kind, base, bench.count);
    const std::size_t hit_bytes = rays.size() * task.depth * sizeof(sim::Hit);
    device_.download(bench.queue, bench.host.bytes().subspan(hits_offset(batch_hits_), hit_bytes),
                     base + hits_offset(batch_hits_));
    device_.record({bench.queue, 0});
}

std::span<const sim::Hit> BatchTracer::hits(Bench& bench, const TraceTask& task) {
    device_.wait({bench.queue, 0});
    const std::byte* first = bench.host.bytes().data() + hits_offset(batch_hits_);
    return {reinterpret_cast<const sim::Hit*>(first), std::size_t{bench.count} * task.depth};
}

}  // namespace citysplat::gpu
