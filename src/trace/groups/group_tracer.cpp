#include "core/error.hpp"
#include "trace/groups/ray_group.hpp"
#include "trace/groups/ray_order.hpp"
#include "trace/tile_frustum.hpp"
#include "trace/tracer.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <atomic>
#include <cmath>
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
            tile.intensity().data(), tile.incidence().data(), tile.frame_number().data(),
            tile.frame().origin()};
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
        : account_(std::move(books), WideTileArrays::bytes(tile.size())), arrays_(tile.size()) {
        require_radii(tile);
        const float slack_m = box_slack_m(max_range_m, extent_m(tile));
        kernels.build(columns_of(tile), tile.size(), slack_m, arrays_);
        view_ = arrays_.view(tile.frame().origin_m(), slack_m);
        if (view_.levels == 0) return;
        const BoxNode& root = *view_.level[view_.levels - 1];
        const auto least = [](const float(&v)[kWide]) {
            return static_cast<double>(*std::min_element(v, v + kWide));
        };
        const auto most = [](const float(&v)[kWide]) {
            return static_cast<double>(*std::max_element(v, v + kWide));
        };
        box_ = {view_.origin + Vec3d{least(root.low[0]), least(root.low[1]), least(root.low[2])},
                view_.origin + Vec3d{most(root.high[0]), most(root.high[1]), most(root.high[2])}};
    }

    std::size_t bytes() const override { return arrays_.bytes(); }
    bool empty() const { return view_.levels == 0; }
    const WideTile& view() const { return view_; }
    const Box3d& box() const { return box_; }

  private:
    Account account_;
    WideTileArrays arrays_;
    WideTile view_;
    Box3d box_;
};

class GroupTileSet final : public TileSet {
  public:
    explicit GroupTileSet(std::span<const TracerTilePtr> tiles) : owners_(tiles.begin(), tiles.end()) {
        for (const TracerTilePtr& owner : owners_) {
            const auto& tile = static_cast<const GroupTile&>(*owner);
            if (tile.empty()) continue;
            tiles_.push_back(tile.view());
            facts_.push_back(tile.view().facts);
            boxes_.push_back(tile.box());
        }
    }
    std::span<const Box3d> boxes() const { return boxes_; }
    const WideTile* tiles() const { return tiles_.data(); }
    const SplatFacts* const* facts() const { return facts_.data(); }

  private:
    std::vector<TracerTilePtr> owners_;
    std::vector<WideTile> tiles_;  ///< by slot, as the other two
    std::vector<const SplatFacts*> facts_;
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
    TracerTilePtr load(SplatTile tile) const override {
        try {
            return std::make_shared<GroupTile>(books_, kernels_, tile, max_range_m_);
        } catch (const std::bad_alloc&) {
            throw ResourceError("out of memory while making a tile of " + std::to_string(tile.size()) +
                                " splats ready; lower --resident");
        }
    }
    std::size_t estimated_bytes(std::uint64_t splats) const override { return WideTileArrays::bytes(splats); }
    TileSetPtr bind(std::span<const TracerTilePtr> tiles) const override {
        return std::make_shared<GroupTileSet>(tiles);
    }
    std::size_t resident_bytes() const override { return books_->load(); }
    /// Rays without an order are sorted by direction: the more there are, the closer are neighbours.
    std::size_t batch_rays(std::span<const Ray> sample) const override {
        return is_ordered(sample) ? 2 * kGroupRays : 64 * kGroupRays;
    }

    void closest(const TileSet& tiles, std::span<const Ray> rays, std::span<Hit> hits) const override {
        const Batch batch(*this, tiles, rays);
        kernels_.closest(batch.task, batch.scratch.group, hits);
    }
    void nearest(const TileSet& tiles, std::span<const Ray> rays, std::uint32_t depth, float gap_m,
                 std::span<HitList> lists) const override {
        const Batch batch(*this, tiles, rays);
        depth = std::clamp(depth, 1u, static_cast<std::uint32_t>(kMaxHits));
        kernels_.nearest(batch.task, batch.scratch.group, depth, gap_m, lists);
    }

  private:
    /// What a thread uses again and again.
    struct Scratch {
        RayGroup group;
        RayOrder order;
    };
    struct Batch {
        Batch(const GroupTracer& tracer, const TileSet& tiles, std::span<const Ray> rays)
            : scratch(tracer.scratch_.local()) {
            refuse_longer_rays(rays, tracer.max_range_m_);
            const auto& set = static_cast<const GroupTileSet&>(tiles);
            reachable = find_reachable(set.boxes(), rays);
            task = {set.tiles(), set.facts(), reachable, rays, scratch.order.arrange(rays)};
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
