#include "core/error.hpp"
#include "trace/groups/ray_group.hpp"
#include "trace/groups/ray_order.hpp"
#include "trace/tile_frustum.hpp"
#include "trace/tracer.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Groups of rays behind the tracer contract.
///
/// A tile is ready as soon as its columns have been unpacked: its hierarchy follows from the order of the
/// splats (wide_tree.hpp). A batch lists the tiles it can reach and sends its rays through them, 512 at a
/// time, front to back (ray_group.hpp). As with Embree the hierarchy only proposes; the disc test decides.
namespace citysplat::trace {

namespace {

/// Memory of all live tiles of a tracer. Tiles may outlive the tracer.
using Books = std::shared_ptr<std::atomic<std::size_t>>;

class Account {
  public:
    Account(Books books, std::size_t bytes) : books_(std::move(books)), bytes_(bytes) {
        books_->fetch_add(bytes_, std::memory_order_relaxed);
    }
    ~Account() { books_->fetch_sub(bytes_, std::memory_order_relaxed); }
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

  private:
    Books books_;
    std::size_t bytes_;
};

SplatColumns columns_of(const SplatTile& tile) {
    return {tile.x().data(),         tile.y().data(),         tile.z().data(),
            tile.normal().data(),    tile.radius().data(),    tile.label().data(),
            tile.intensity().data(), tile.incidence().data(), tile.frame().origin()};
}

void require_radii(const SplatTile& tile) {
    const auto radius = tile.radius();
    const auto bad = std::find(radius.begin(), radius.end(), std::uint16_t{0});
    if (bad != radius.end())
        throw CorruptionError("splat " + std::to_string(bad - radius.begin()) + " has no radius");
}

/// Largest coordinate of a splat in its frame, either sign.
float extent_m(const SplatTile& tile) {
    std::int32_t most = 0;
    for (const auto column : {tile.x(), tile.y(), tile.z()})
        for (const std::uint32_t packed : column) most = std::max(most, std::abs(unpack_position(packed)));
    return static_cast<float>(most) * (1.0f / 8192.0f);
}

/// By how much boxes are larger than their discs: what the disc test rounds, and what the beams do. With
/// u = 2⁻²⁴ a slope errs by u of itself, the way along the axis by u, their product and the sum with the
/// origin by u each: 4 u of the range, and 2 u of the origin, which is not farther from the frame than range,
/// splats and their radius together. Of the box's own corners it is 2 u.
float box_slack_m(float range_m, float tile_extent_m) {
    return hit_slack_m(range_m) + 16 * 0x1p-24f * (range_m + tile_extent_m + 8);
}

class GroupTile final : public TracerTile {
  public:
    GroupTile(Books books, const GroupKernels& kernels, const SplatTile& tile, float max_range_m)
        : arrays_(tile.size()), account_(std::move(books), arrays_.bytes()) {
        require_radii(tile);
        const float slack_m = box_slack_m(max_range_m, extent_m(tile));
        kernels.build(columns_of(tile), tile.size(), slack_m, arrays_);
        view_ = arrays_.view(tile.frame().origin_m(), slack_m);
        if (view_.levels == 0) return;
        box_ = box_of_root();
    }
    GroupTile(Books books, const MeshPrimitives& mesh, float slack_m)
        : arrays_(mesh, slack_m),
          account_(std::move(books), arrays_.bytes()),
          view_(arrays_.view({0, 0, 0}, slack_m)) {
        if (view_.levels > 0) box_ = box_of_root();
    }
    GroupTile(Books books, const MeshPrimitives& mesh, float slack_m, Vec3d world_origin)
        : GroupTile(std::move(books), mesh, slack_m) {
        mesh_origin_ = world_origin;
    }

    std::size_t bytes() const override { return arrays_.bytes(); }
    /// Of a tile that is a mesh: where its frame begins in the world.
    const std::optional<Vec3d>& mesh_origin() const { return mesh_origin_; }
    bool empty() const { return view_.levels == 0; }
    const WideTile& view() const { return view_; }
    const Box3d& box() const { return box_; }  ///< in the tile's frame

  private:
    Box3d box_of_root() const {
        const BoxNode& root = *view_.level[view_.levels - 1];
        const auto least = [](const float(&v)[kWide]) {
            return static_cast<double>(*std::min_element(v, v + kWide));
        };
        const auto most = [](const float(&v)[kWide]) {
            return static_cast<double>(*std::max_element(v, v + kWide));
        };
        return {{least(root.low[0]), least(root.low[1]), least(root.low[2])},
                {most(root.high[0]), most(root.high[1]), most(root.high[2])}};
    }

    WideTileArrays arrays_;
    Account account_;
    WideTile view_;
    Box3d box_;
    std::optional<Vec3d> mesh_origin_;
};

/// A mesh of a city is met as a part that stands: in its own frame, by rays that start on the lattice.
PoseKey standing_at(Vec3d origin) { return {{1, 0, 0, 0, 1, 0, 0, 0, 1}, origin}; }

class GroupTileSet final : public TileSet {
  public:
    explicit GroupTileSet(std::span<const TracerTilePtr> tiles) : owners_(tiles.begin(), tiles.end()) {
        for (const TracerTilePtr& owner : owners_) {
            const auto& tile = static_cast<const GroupTile&>(*owner);
            if (tile.empty()) continue;
            if (tile.mesh_origin()) {
                poses_.push_back(std::make_unique<PoseKey>(standing_at(*tile.mesh_origin())));
                meshes_.push_back(
                    {.shape = &tile, .motion = {poses_.back().get(), nullptr, 0, 0}, .facts = {}});
                continue;
            }
            tiles_.push_back(tile.view());
            slots_.push_back({tile.view().facts, {}});
            const Vec3d origin = tile.view().origin;
            boxes_.push_back({origin + tile.box().min, origin + tile.box().max});
        }
    }
    std::span<const Box3d> boxes() const { return boxes_; }
    const WideTile* tiles() const { return tiles_.data(); }
    std::span<const SlotFacts> slots() const { return slots_; }
    std::span<const Part> meshes() const { return meshes_; }

  private:
    std::vector<TracerTilePtr> owners_;
    std::vector<std::unique_ptr<PoseKey>> poses_;  ///< of the meshes
    std::vector<Part> meshes_;
    std::vector<WideTile> tiles_;  ///< by slot, as the other two
    std::vector<SlotFacts> slots_;
    std::vector<Box3d> boxes_;
};

const GroupKernels& kernels_for(const std::string& instruction_set) {
    for (const GroupKernels* kernels : all_group_kernels())
        if (instruction_set.empty() || instruction_set == kernels->instruction_set) return *kernels;
    std::string known;
    for (const std::string& name : group_instruction_sets()) known += (known.empty() ? "" : ", ") + name;
    throw UnavailableError("this machine or program has no instruction set \"" + instruction_set +
                           "\"; there are: " + known);
}

class GroupTracer final : public Tracer {
  public:
    explicit GroupTracer(const GroupOptions& options)
        : kernels_(kernels_for(options.instruction_set)), max_range_m_(options.max_range_m) {}

    std::string name() const override {
        return "groups of " + std::to_string(kGroupRays) + " rays, " + kernels_.instruction_set;
    }
    TracerTilePtr load(const SplatTile& tile) const override {
        try {
            return std::make_shared<GroupTile>(books_, kernels_, tile, max_range_m_);
        } catch (const std::bad_alloc&) {
            throw ResourceError("out of memory while making a tile of " + std::to_string(tile.size()) +
                                " splats ready; lower --resident");
        }
    }
    TracerTilePtr load(const TriangleMesh& mesh) const override {
        try {
            const MeshPrimitives primitives(mesh);
            const Box3d& box = primitives.box;
            const double extent_m =
                std::max({-box.min.x, -box.min.y, -box.min.z, box.max.x, box.max.y, box.max.z});
            return std::make_shared<GroupTile>(books_, primitives,
                                               box_slack_m(max_range_m_, static_cast<float>(extent_m)));
        } catch (const std::bad_alloc&) {
            throw ResourceError("out of memory while making a mesh of " +
                                std::to_string(mesh.triangles.size()) + " triangles ready");
        }
    }
    TracerTilePtr load(const MeshTile& tile) const override {
        try {
            const float slack_m =
                box_slack_m(max_range_m_, static_cast<float>(to_metres(MeshTile::kMaxSteps)));
            return std::make_shared<GroupTile>(books_, MeshPrimitives(tile), slack_m,
                                               tile.frame().origin_m());
        } catch (const std::bad_alloc&) {
            throw ResourceError("out of memory while making a tile of " +
                                std::to_string(tile.triangle_count()) + " triangles ready; lower --resident");
        }
    }
    std::size_t estimated_bytes(std::uint64_t splats) const override { return WideTileArrays::bytes(splats); }
    std::size_t estimated_mesh_bytes(std::uint64_t triangles) const override {
        return WideTileArrays::mesh_bytes(triangles);
    }
    TileSetPtr bind(std::span<const TracerTilePtr> tiles) const override {
        return std::make_shared<GroupTileSet>(tiles);
    }
    std::size_t resident_bytes() const override { return books_->load(); }
    /// Rays without an order are sorted by direction: the more there are, the closer are neighbours.
    std::size_t batch_rays(std::span<const Ray> sample) const override {
        return is_ordered(sample) ? 2 * kGroupRays : 64 * kGroupRays;
    }

    void closest(const Scene& scene, std::span<const Ray> rays, std::span<Hit> hits) const override {
        const Batch batch(*this, scene, rays);
        kernels_.closest(batch.task, batch.scratch.rays, hits);
    }
    void nearest(const Scene& scene, std::span<const Ray> rays, std::uint32_t depth, float gap_m,
                 std::span<HitList> lists) const override {
        const Batch batch(*this, scene, rays);
        depth = std::clamp(depth, 1u, static_cast<std::uint32_t>(kMaxHits));
        kernels_.nearest(batch.task, batch.scratch.rays, depth, gap_m, lists);
    }

  private:
    /// What a thread uses again and again.
    struct Scratch {
        GroupScratch rays;
        RayOrder order;
        std::vector<Box3d> boxes;  ///< of tiles and parts
        std::vector<SlotFacts> slots;
        std::vector<GroupPart> parts;
        std::vector<Part> scene;  ///< meshes of the city and parts
    };
    struct Batch {
        Batch(const GroupTracer& tracer, const Scene& scene, std::span<const Ray> rays)
            : scratch(tracer.scratch_.local()) {
            refuse_longer_rays(rays, tracer.max_range_m_);
            const auto& set = static_cast<const GroupTileSet&>(scene.tiles);
            const auto first_part = static_cast<std::uint32_t>(set.boxes().size());
            task = {
                set.tiles(), nullptr, first_part, set.slots().data(), {}, rays, scratch.order.arrange(rays)};
            if (!set.meshes().empty()) {
                scratch.scene.assign(set.meshes().begin(), set.meshes().end());
                scratch.scene.insert(scratch.scene.end(), scene.parts.begin(), scene.parts.end());
                prepare_parts(set, scratch.scene);
            } else if (!scene.parts.empty()) {
                prepare_parts(set, scene.parts);
            } else {
                reachable = find_reachable(set.boxes(), rays);
            }
            task.reachable = reachable;
        }

        /// Tiles and parts that can be reached, and what the kernels need of the parts.
        void prepare_parts(const GroupTileSet& set, std::span<const Part> parts) {
            const TimeSpan times = times_of(task.rays);
            scratch.boxes.assign(set.boxes().begin(), set.boxes().end());
            scratch.slots.assign(set.slots().begin(), set.slots().end());
            for (const Part& part : parts) {
                const auto& shape = static_cast<const GroupTile&>(*part.shape);
                const bool absent =
                    shape.empty() || !(times.end_s >= part.from_s) || !(times.begin_s < part.to_s);
                scratch.boxes.push_back(absent ? kEmptyBox : box_during(part.motion, shape.box(), times));
                scratch.slots.push_back({shape.view().facts, part.facts});
            }
            reachable = find_reachable(scratch.boxes, task.rays);
            scratch.parts.resize(parts.size());
            for (const ReachableTile& r : reachable)
                if (r.slot >= task.first_part)
                    scratch.parts[r.slot - task.first_part] =
                        group_part(parts[r.slot - task.first_part], scratch.boxes[r.slot],
                                   static_cast<std::uint32_t>(r.slot));
            task.parts = scratch.parts.data();
            task.slots = scratch.slots.data();
        }

        static GroupPart group_part(const Part& part, const Box3d& box, std::uint32_t slot) {
            // Rays start up to 0.9 mm from where beams do; the rest is for what is rounded in the frame.
            constexpr float kMargin_m = 2e-3f;
            WideTile shape = static_cast<const GroupTile&>(*part.shape).view();
            shape.origin = {0, 0, 0};
            const float margin = kMargin_m + shape.slack_m;
            const Vec3f by{margin, margin, margin};
            return {&part, shape, box.min, single_box(-by, vec_cast<float>(box.max - box.min) + by), slot};
        }

        Scratch& scratch;
        std::vector<ReachableTile> reachable;
        GroupTask task;
    };

    const GroupKernels& kernels_;
    float max_range_m_;
    Books books_ = std::make_shared<std::atomic<std::size_t>>(0);
    mutable tbb::enumerable_thread_specific<Scratch> scratch_;
};

}  // namespace

std::vector<std::string> group_instruction_sets() {
    std::vector<std::string> names;
    for (const GroupKernels* kernels : all_group_kernels()) names.emplace_back(kernels->instruction_set);
    return names;
}

std::unique_ptr<Tracer> make_group_tracer(const GroupOptions& options) {
    require_range(options.max_range_m);
    return std::make_unique<GroupTracer>(options);
}

}  // namespace citysplat::trace
