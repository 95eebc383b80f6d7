#include "cuda/optix_tracer.hpp"

#include "core/error.hpp"
#include "cuda/batch_tracer.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/tile_loader.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace citysplat::gpu {

namespace {

/// Everything that lives as long as the tracer or one of its tiles. Declared in the order of dependence.
struct Gpu {
    Gpu(std::unique_ptr<Device> d, const OptixOptions& options)
        : device(std::move(d)),
          memory(*device, options.memory_bytes ? options.memory_bytes : device->free_bytes() / 10 * 9),
          loader(*device, memory, options.staging_bytes),
          batches(*device, memory, options.batch_hits) {}

    std::unique_ptr<Device> device;
    DeviceMemory memory;
    TileLoader loader;
    BatchTracer batches;
};

class OptixTile final : public trace::TracerTile {
  public:
    OptixTile(std::shared_ptr<Gpu> gpu, const SplatTile& tile)
        : gpu_(std::move(gpu)), loaded_(gpu_->loader.load(tile)) {}
    OptixTile(std::shared_ptr<Gpu> gpu, const trace::MeshPrimitives& mesh)
        : gpu_(std::move(gpu)), loaded_(gpu_->loader.load(mesh)) {}
    std::size_t bytes() const override { return loaded_.bytes(); }
    const LoadedTile& loaded() const { return loaded_; }
    /// The scene that parts of this shape are met in; made when it is asked for.
    std::uint64_t shape() const {
        std::call_once(asked_, [this] { shape_accel_ = gpu_->loader.build_shape(loaded_, shape_); });
        return shape_;
    }

  private:
    std::shared_ptr<Gpu> gpu_;
    LoadedTile loaded_;
    mutable std::once_flag asked_;
    mutable DeviceBuffer shape_accel_;
    mutable std::uint64_t shape_ = 0;
};

class OptixTileSet final : public trace::TileSet {
  public:
    OptixTileSet(std::shared_ptr<Gpu> gpu, std::span<const trace::TracerTilePtr> tiles)
        : gpu_(std::move(gpu)), owners_(tiles.begin(), tiles.end()) {
        std::vector<const LoadedTile*> present;
        for (const trace::TracerTilePtr& owner : owners_) {
            const auto& tile = static_cast<const OptixTile&>(*owner);
            if (tile.loaded().count > 0) present.push_back(&tile.loaded());
        }
        scene_ = gpu_->loader.bind(present);
    }
    const LoadedScene& scene() const { return scene_; }

  private:
    std::shared_ptr<Gpu> gpu_;
    std::vector<trace::TracerTilePtr> owners_;
    LoadedScene scene_;
};

/// Puts the hits of one set of tiles among those of the others; what is out of reach of the first goes.
void merge(trace::HitList& list, std::span<const trace::Hit> hits, std::uint32_t depth, float reach_m) {
    for (const trace::Hit& hit : hits) {
        if (!hit.exists()) break;
        std::uint32_t at = list.count;
        while (at > 0 && trace::comes_before(hit, list.hits[at - 1])) --at;
        if (at >= depth) break;
        std::uint32_t last = list.count < depth ? list.count++ : depth - 1;
        for (; last > at; --last) list.hits[last] = list.hits[last - 1];
        list.hits[at] = hit;
    }
    while (list.count > 0 && list.hits[list.count - 1].t > list.hits[0].t + reach_m)
        list.hits[--list.count] = trace::Hit{};
}

PartView view_of(const trace::Part& part) {
    const auto& shape = static_cast<const OptixTile&>(*part.shape);
    const LoadedTile& loaded = shape.loaded();
    return {shape.shape(), loaded.discs(), loaded.triangles(), loaded.facts(),
            part.motion,   part.facts,     part.from_s,        part.to_s};
}

/// Where a ray's interest ends, given the hits it has from other tiles.
float bound(const trace::HitList& list, std::uint32_t depth, float reach_m, float t_max) {
    if (list.count == 0) return t_max;
    const float reach = std::min(t_max, list.hits[0].t + reach_m);
    return list.count < depth ? reach : std::min(reach, list.hits[depth - 1].t);
}

class OptixTracer final : public trace::Tracer, public sim::ScanTracer {
  public:
    OptixTracer(std::unique_ptr<Device> device, const OptixOptions& options)
        : gpu_(std::make_shared<Gpu>(std::move(device), options)) {}

    std::string name() const override { return gpu_->device->description(); }

    trace::TracerTilePtr load(const SplatTile& tile) const override {
        return std::make_shared<OptixTile>(gpu_, tile);
    }
    trace::TracerTilePtr load(const TriangleMesh& mesh) const override {
        return std::make_shared<OptixTile>(gpu_, trace::MeshPrimitives(mesh));
    }
    std::size_t estimated_bytes(std::uint64_t splats) const override {
        if (splats > std::numeric_limits<std::uint32_t>::max())
            throw ResourceError("a tile of " + std::to_string(splats) + " splats is too large for a GPU");
        return gpu_->loader.resident_bytes(static_cast<std::uint32_t>(splats));
    }
    trace::TileSetPtr bind(std::span<const trace::TracerTilePtr> tiles) const override {
        return std::make_shared<OptixTileSet>(gpu_, tiles);
    }
    std::size_t resident_bytes() const override {
        return gpu_->memory.used_bytes(MemoryUse::splats) + gpu_->memory.used_bytes(MemoryUse::accel);
    }
    std::size_t batch_rays(std::span<const trace::Ray>) const override { return gpu_->batches.batch_hits(); }

    void closest(const trace::Scene& at, std::span<const trace::Ray> rays,
                 std::span<trace::Hit> hits) const override {
        const LoadedParts parts = load_parts(at.parts);
        const SceneOnDevice scene{static_cast<const OptixTileSet&>(at.tiles).scene(), parts};
        if (scene.tiles.scene_count + parts.count == 0) return;
        gpu_->batches.trace(
            scene, rays.size(), {},
            [&](std::size_t first, std::span<trace::Ray> out) {
                for (std::size_t i = 0; i < out.size(); ++i) {
                    const trace::Ray& ray = rays[first + i];
                    const trace::Hit& known = hits[first + i];
                    out[i] = known.exists() ? trace::shortened(ray, known.t) : ray;
                }
            },
            [&](std::size_t first, std::span<const trace::Hit> found) {
                for (std::size_t i = 0; i < found.size(); ++i) {
                    const trace::Hit& a = found[i];
                    trace::Hit& b = hits[first + i];
                    if (!a.exists()) continue;
                    if (!b.exists() || trace::comes_before(a, b)) b = a;
                }
            });
    }

    void nearest(const trace::Scene& at, std::span<const trace::Ray> rays, std::uint32_t depth, float gap_m,
                 std::span<trace::HitList> lists) const override {
        const LoadedParts parts = load_parts(at.parts);
        const SceneOnDevice scene{static_cast<const OptixTileSet&>(at.tiles).scene(), parts};
        if (scene.tiles.scene_count + parts.count == 0) return;
        depth = std::clamp(depth, 1u, static_cast<std::uint32_t>(trace::kMaxHits));
        const TraceTask task = nearest_task(depth, gap_m);
        const float reach_m = task.reach_m;
        gpu_->batches.trace(
            scene, rays.size(), task,
            [&](std::size_t first, std::span<trace::Ray> out) {
                for (std::size_t i = 0; i < out.size(); ++i) {
                    const trace::Ray& ray = rays[first + i];
                    out[i] = trace::shortened(ray, bound(lists[first + i], depth, reach_m, ray.t_max));
                }
            },
            [&](std::size_t first, std::span<const trace::Hit> found) {
                for (std::size_t i = 0; i * depth < found.size(); ++i)
                    merge(lists[first + i], found.subspan(i * depth, depth), depth, reach_m);
            });
    }

    void scan(const trace::Scene& at, const sim::ScanPart& part,
              std::span<sim::Return> returns) const override {
        const LoadedParts parts = load_parts(at.parts);
        const SceneOnDevice scene{static_cast<const OptixTileSet&>(at.tiles).scene(), parts};
        gpu_->batches.scan(scene, part, [&](std::size_t first, std::span<const sim::Return> made) {
            const sim::FiringPlan& firings = part.scan.firings;
            for (std::size_t i = 0; i < made.size(); ++i)
                returns[ray_number(firings, static_cast<std::uint32_t>(first + i))] = made[i];
        });
    }

  private:
    LoadedParts load_parts(std::span<const trace::Part> parts) const {
        std::vector<PartView> views;
        for (const trace::Part& part : parts)
            if (static_cast<const OptixTile&>(*part.shape).loaded().count > 0) views.push_back(view_of(part));
        return gpu_->loader.load_parts(views);
    }

    std::shared_ptr<Gpu> gpu_;
};

}  // namespace

std::unique_ptr<trace::Tracer> make_optix_tracer(std::unique_ptr<Device> device,
                                                 const OptixOptions& options) {
    return std::make_unique<OptixTracer>(std::move(device), options);
}

}  // namespace citysplat::gpu
