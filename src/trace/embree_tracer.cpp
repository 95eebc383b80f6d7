#include "core/embree.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "model/disc_bounds_hd.hpp"
#include "trace/packet.hpp"
#include "trace/part_reference.hpp"
#include "trace/splat_columns_hd.hpp"
#include "trace/tile_frustum.hpp"
#include "trace/tracer.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

/// Embree behind the tracer contract.
///
/// One scene per tile, one user geometry per scene, whose primitives are runs of consecutive splats (stored
/// in Hilbert order, so a run is compact). There is no top-level scene: a packet visits the tiles it can
/// reach front to back, each with the ray origins of local_origin(). That keeps the arithmetic independent of
/// tiles, and loading or evicting one never touches what other threads are tracing.
///
/// Embree only proposes: its boxes are wide enough (hit_slack_m()) that its traversal, which differs between
/// instruction sets but errs on the safe side in robust mode, cannot hide a disc that the disc test accepts.
/// Parts are met by brute force before the tiles (part_reference.hpp).
namespace citysplat::trace {

namespace {

struct Device {
    explicit Device(const std::string& config) : handle(rtcNewDevice(config.c_str())) {
        if (!handle)
            throw UnavailableError("Embree cannot start with \"" + config + "\" (error " +
                                   std::to_string(rtcGetDeviceError(nullptr)) + ")");
        rtcSetDeviceMemoryMonitorFunction(
            handle,
            [](void* self, ssize_t change, bool) {
                static_cast<Device*>(self)->bytes.fetch_add(change, std::memory_order_relaxed);
                return true;
            },
            this);
    }
    ~Device() { rtcReleaseDevice(handle); }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    bool has(RTCDeviceProperty property) const { return rtcGetDeviceProperty(handle, property) != 0; }
    void check(const std::string& doing) const {
        const RTCError error = rtcGetDeviceError(handle);
        if (error == RTC_ERROR_OUT_OF_MEMORY)
            throw ResourceError("out of memory while " + doing + "; lower --resident");
        if (error != RTC_ERROR_NONE)
            throw ResourceError("Embree failed with error " + std::to_string(error) + " while " + doing);
    }

    RTCDevice handle;
    std::atomic<std::int64_t> bytes{0};
};

struct ReleaseScene {
    void operator()(RTCScene scene) const { rtcReleaseScene(scene); }
};
using ScenePtr = std::unique_ptr<std::remove_pointer_t<RTCScene>, ReleaseScene>;

/// Adds its bytes to the device's books for as long as it lives.
class Account {
  public:
    Account(Device& device, std::size_t bytes) : device_(device), bytes_(static_cast<std::int64_t>(bytes)) {
        device_.bytes.fetch_add(bytes_, std::memory_order_relaxed);
    }
    ~Account() { device_.bytes.fetch_sub(bytes_, std::memory_order_relaxed); }
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

  private:
    Device& device_;
    std::int64_t bytes_;
};

class EmbreeTile final : public ReferenceShape {
  public:
    EmbreeTile(std::shared_ptr<Device> device, const SplatTile& tile, const EmbreeOptions& options);
    std::size_t bytes() const override { return discs_.size() * kBytesPerSplat + hierarchy_bytes_; }
    RTCScene scene() const { return scene_.get(); }
    const Box3d& box() const { return box_; }
    TileView view() const { return {discs_.data(), facts_.data(), origin_}; }
    ShapeView shape() const override {
        return {discs_, {}, facts_.data(), {box_.min - origin_, box_.max - origin_}};
    }

    /// The discs of a primitive, in a set where this tile has the slot `slot`.
    LeafDiscs leaf(std::uint32_t primitive, std::uint32_t slot) const {
        const std::uint32_t first = primitive * per_leaf_;
        const auto count = static_cast<std::uint32_t>(discs_.size());
        return {discs_.data() + first, std::min(per_leaf_, count - first), {slot, first}};
    }

    static constexpr std::size_t kBytesPerSplat = sizeof(TraceDisc) + sizeof(SplatFacts);

  private:
    static void bounds(const RTCBoundsFunctionArguments* args) noexcept;

    std::shared_ptr<Device> device_;
    std::uint32_t per_leaf_;
    float slack_m_;
    Vec3d origin_;
    Account account_;
    std::vector<TraceDisc> discs_;
    std::vector<SplatFacts> facts_;
    Box3d box_;
    ScenePtr scene_;
    std::size_t hierarchy_bytes_ = 0;
};

/// What a packet carries through the traversal of one tile. Embree sees the first member only.
struct PacketContext {
    embree::Context embree;
    unsigned width;
    std::uint32_t slot;     ///< of the tile
    ClosestLanes* closest;  ///< exactly one of the two
    NearestLanes* nearest;
    LeafFunction<ClosestLanes> meet_closest;
    LeafFunction<NearestLanes> meet_nearest;
};

/// A packet as Embree hands it over: `count` lanes, whole or regrouped.
struct GivenPacket {
    PacketRays rays;
    const unsigned* ids;  ///< which lane each was when we fired the packet
    unsigned count;
};

template <class Lanes>
void meet(const LeafDiscs& leaf, const GivenPacket& given, unsigned width, LeafFunction<Lanes> function,
          Lanes& lanes) {
    if (given.count == width) return function(leaf, given.rays, lanes);
    for (unsigned i = 0; i < given.count; ++i)
        if (given.rays.active[i]) meet_leaf_lane(leaf, given.rays, i, given.ids[i], lanes);
}

/// Rays of a packet are columns in the order of RTCRayN: origin, tnear, direction, time, tfar, mask, id,
/// flags.
void intersect(const RTCIntersectFunctionNArguments* args) noexcept {
    const auto& context = *reinterpret_cast<const PacketContext*>(args->context);
    const auto& tile = *static_cast<const EmbreeTile*>(args->geometryUserPtr);
    const std::size_t n = args->N;
    auto* column = reinterpret_cast<float*>(args->rayhit);
    const GivenPacket given{{column, column + n, column + 2 * n, column + 4 * n, column + 5 * n,
                             column + 6 * n, column + 3 * n, column + 8 * n, args->valid},
                            reinterpret_cast<const unsigned*>(column + 10 * n),
                            args->N};
    const LeafDiscs leaf = tile.leaf(args->primID, context.slot);
    if (context.closest)
        meet(leaf, given, context.width, context.meet_closest, *context.closest);
    else
        meet(leaf, given, context.width, context.meet_nearest, *context.nearest);
}

void EmbreeTile::bounds(const RTCBoundsFunctionArguments* args) noexcept {
    const handover::Turn turn(args->geometryUserPtr);
    const auto& tile = *static_cast<const EmbreeTile*>(args->geometryUserPtr);
    const LeafDiscs leaf = tile.leaf(args->primID, kNoSlot);
    Vec3f low{INFINITY, INFINITY, INFINITY}, high{-INFINITY, -INFINITY, -INFINITY};
    for (std::uint32_t i = 0; i < leaf.count; ++i) {
        const TraceDisc& disc = leaf.discs[i];
        const Vec3f reach = disc_reach(disc.normal, std::sqrt(disc.radius_squared));
        low = {std::min(low.x, disc.centre.x - reach.x), std::min(low.y, disc.centre.y - reach.y),
               std::min(low.z, disc.centre.z - reach.z)};
        high = {std::max(high.x, disc.centre.x + reach.x), std::max(high.y, disc.centre.y + reach.y),
                std::max(high.z, disc.centre.z + reach.z)};
    }
    const float slack = tile.slack_m_;
    *args->bounds_o = {low.x - slack,  low.y - slack,  low.z - slack,  0,
                       high.x + slack, high.y + slack, high.z + slack, 0};
}

/// Embree's books for user geometry, measured: about 90 bytes a primitive, and more while it builds.
constexpr std::size_t kHierarchyBytesPerLeaf = 128;

SplatColumns columns_of(const SplatTile& tile) {
    return {tile.x().data(),         tile.y().data(),         tile.z().data(),
            tile.normal().data(),    tile.radius().data(),    tile.label().data(),
            tile.intensity().data(), tile.incidence().data(), tile.frame().origin()};
}

EmbreeTile::EmbreeTile(std::shared_ptr<Device> device, const SplatTile& tile, const EmbreeOptions& options)
    : device_(std::move(device)),
      per_leaf_(options.splats_per_leaf),
      slack_m_(hit_slack_m(options.max_range_m)),
      origin_(tile.frame().origin_m()),
      account_(*device_, tile.size() * kBytesPerSplat) {
    discs_.reserve(tile.size());
    facts_.reserve(tile.size());
    Vec3f low{INFINITY, INFINITY, INFINITY}, high{-INFINITY, -INFINITY, -INFINITY};
    const SplatColumns columns = columns_of(tile);
    for (std::uint32_t i = 0; i < tile.size(); ++i) {
        const Disc disc = disc_of(columns, i);
        if (!(disc.radius > 0) || !std::isfinite(dot(disc.normal, disc.normal)))
            throw CorruptionError("splat " + std::to_string(i) + " has no radius or no normal");
        discs_.push_back(make_trace_disc(disc, columns.label[i]));
        facts_.push_back(facts_of(columns, i));
        const float reach = disc.radius + 2 * slack_m_;
        low = {std::min(low.x, disc.centre.x - reach), std::min(low.y, disc.centre.y - reach),
               std::min(low.z, disc.centre.z - reach)};
        high = {std::max(high.x, disc.centre.x + reach), std::max(high.y, disc.centre.y + reach),
                std::max(high.z, disc.centre.z + reach)};
    }
    if (discs_.empty()) return;
    box_ = {origin_ + vec_cast<double>(low), origin_ + vec_cast<double>(high)};

    const auto leaves = static_cast<unsigned>((discs_.size() + per_leaf_ - 1) / per_leaf_);
    scene_.reset(rtcNewScene(device_->handle));
    rtcSetSceneFlags(scene_.get(), RTC_SCENE_FLAG_ROBUST);
    RTCGeometry geometry = rtcNewGeometry(device_->handle, RTC_GEOMETRY_TYPE_USER);
    rtcSetGeometryUserPrimitiveCount(geometry, leaves);
    rtcSetGeometryUserData(geometry, this);
    rtcSetGeometryBoundsFunction(geometry, &EmbreeTile::bounds, nullptr);
    rtcSetGeometryIntersectFunction(geometry, &intersect);
    rtcCommitGeometry(geometry);
    rtcAttachGeometry(scene_.get(), geometry);
    rtcReleaseGeometry(geometry);
    handover::release(this);
    rtcCommitScene(scene_.get());
    handover::acquire(this);
    hierarchy_bytes_ = leaves * kHierarchyBytesPerLeaf;
    device_->check("building the hierarchy of a tile");
}

class EmbreeTileSet final : public TileSet {
  public:
    explicit EmbreeTileSet(std::span<const TracerTilePtr> tiles) : owners_(tiles.begin(), tiles.end()) {
        for (const TracerTilePtr& owner : owners_) {
            if (const auto* mesh = dynamic_cast<const ReferenceMesh*>(owner.get())) {
                add_mesh(*mesh);
                continue;
            }
            const auto* tile = static_cast<const EmbreeTile*>(owner.get());
            if (!tile->scene()) continue;
            tiles_.push_back(tile);
            views_.push_back(tile->view());
            slots_.push_back({tile->view().facts, {}});
            boxes_.push_back(tile->box());
        }
    }
    std::span<const Box3d> boxes() const { return boxes_; }
    const EmbreeTile& tile(std::size_t slot) const { return *tiles_[slot]; }
    const TileView* views() const { return views_.data(); }
    const SlotFacts* slots() const { return slots_.data(); }
    /// Tiles that are meshes: they are met as parts that stand.
    std::span<const Part> meshes() const { return meshes_; }

  private:
    void add_mesh(const ReferenceMesh& mesh) {
        if (mesh.empty()) return;
        poses_.push_back(std::make_unique<PoseKey>(PoseKey{{1, 0, 0, 0, 1, 0, 0, 0, 1}, mesh.origin()}));
        meshes_.push_back({.shape = &mesh, .motion = {poses_.back().get(), nullptr, 0, 0}, .facts = {}});
    }

    std::vector<TracerTilePtr> owners_;
    std::vector<std::unique_ptr<PoseKey>> poses_;
    std::vector<Part> meshes_;
    std::vector<const EmbreeTile*> tiles_;  ///< by slot, as the other three
    std::vector<TileView> views_;
    std::vector<SlotFacts> slots_;
    std::vector<Box3d> boxes_;
};

template <unsigned kWidth>
using Packet =
    std::conditional_t<kWidth == 4, RTCRayHit4, std::conditional_t<kWidth == 8, RTCRayHit8, RTCRayHit16>>;

/// Sends packets of kWidth rays through the tiles of a set.
template <unsigned kWidth>
class PacketTracer {
  public:
    PacketTracer(const EmbreeTileSet& set, std::span<const Ray> rays, PacketContext& context)
        : set_(set), rays_(rays), context_(context) {
        reachable_ = find_reachable(set.boxes(), rays);
    }

    /// Rays first … first + count − 1 with the bounds `t_max`, which end up lowered to the hits found.
    void trace(std::size_t first, unsigned count, float (&t_max)[kMaxPacket]) {
        auto& ray = packet_.ray;
        for (unsigned k = 0; k < kWidth; ++k) {
            const Ray& r = rays_[first + std::min(k, count - 1)];
            const Vec3d origin = lattice_origin(r);
            origin_x_[k] = origin.x;
            origin_y_[k] = origin.y;
            origin_z_[k] = origin.z;
            slabs_.set(k, origin - rays_[0].origin, r.direction);
            ray.dir_x[k] = r.direction.x;
            ray.dir_y[k] = r.direction.y;
            ray.dir_z[k] = r.direction.z;
            ray.tnear[k] = r.t_min;
            ray.tfar[k] = k < count ? t_max[k] : -1.0f;
            ray.time[k] = 0;
            ray.mask[k] = 0xffffffffu;
            ray.id[k] = k;
            ray.flags[k] = 0;
        }
        for (const ReachableTile& reachable : reachable_) {
            if (!slabs_.enter(reachable.relative_box, ray.tfar, valid_)) continue;
            const EmbreeTile& tile = set_.tile(reachable.slot);
            const Vec3d frame_origin = tile.view().origin;
            context_.slot = static_cast<std::uint32_t>(reachable.slot);
            for (unsigned k = 0; k < kWidth; ++k) {
                const Vec3f origin = local_origin({origin_x_[k], origin_y_[k], origin_z_[k]}, frame_origin);
                ray.org_x[k] = origin.x;
                ray.org_y[k] = origin.y;
                ray.org_z[k] = origin.z;
                packet_.hit.geomID[k] = RTC_INVALID_GEOMETRY_ID;
            }
            embree::intersect(valid_, tile.scene(), context_.embree, packet_);
        }
        for (unsigned k = 0; k < count; ++k) t_max[k] = ray.tfar[k];
    }

  private:
    const EmbreeTileSet& set_;
    std::span<const Ray> rays_;
    PacketContext& context_;
    std::vector<ReachableTile> reachable_;
    alignas(64) double origin_x_[kWidth], origin_y_[kWidth], origin_z_[kWidth];  ///< lattice_origin()
    SlabPacket<kWidth> slabs_;
    alignas(64) Packet<kWidth> packet_;
    alignas(64) int valid_[kWidth];
};

class EmbreeTracer final : public Tracer {
  public:
    explicit EmbreeTracer(const EmbreeOptions& options)
        : options_(options),
          device_(std::make_shared<Device>(options.isa.empty() ? "" : "isa=" + options.isa)) {
        width_ = device_->has(RTC_DEVICE_PROPERTY_NATIVE_RAY16_SUPPORTED)  ? 16
                 : device_->has(RTC_DEVICE_PROPERTY_NATIVE_RAY8_SUPPORTED) ? 8
                                                                           : 4;
        // Once: finding out about the CPU takes microseconds, on virtual machines many.
        meet_closest_ = leaf_function<ClosestLanes>(width_, options_.simd);
        meet_nearest_ = leaf_function<NearestLanes>(width_, options_.simd);
    }

    std::string name() const override {
        return "Embree " + std::to_string(RTC_VERSION_MAJOR) + "." + std::to_string(RTC_VERSION_MINOR) +
               ", packets of " + std::to_string(width_);
    }
    TracerTilePtr load(const SplatTile& tile) const override {
        return std::make_shared<EmbreeTile>(device_, tile, options_);
    }
    TracerTilePtr load(const TriangleMesh& mesh) const override {
        return std::make_shared<ReferenceMesh>(mesh);
    }
    TracerTilePtr load(const MeshTile& tile) const override { return std::make_shared<ReferenceMesh>(tile); }
    std::size_t estimated_mesh_bytes(std::uint64_t triangles) const override {
        return triangles * (sizeof(TraceTriangle) + sizeof(SplatFacts));
    }
    std::size_t estimated_bytes(std::uint64_t splats) const override {
        const std::size_t leaves = (splats + options_.splats_per_leaf - 1) / options_.splats_per_leaf;
        return splats * EmbreeTile::kBytesPerSplat + leaves * kHierarchyBytesPerLeaf;
    }
    TileSetPtr bind(std::span<const TracerTilePtr> tiles) const override {
        return std::make_shared<EmbreeTileSet>(tiles);
    }
    std::size_t resident_bytes() const override {
        return static_cast<std::size_t>(std::max<std::int64_t>(0, device_->bytes.load()));
    }
    std::size_t batch_rays(std::span<const Ray>) const override { return 1024; }

    void closest(const Scene& scene, std::span<const Ray> rays, std::span<Hit> hits) const override {
        refuse_longer_rays(rays, options_.max_range_m);
        closest_on_parts(scene.parts, rays, hits);
        const auto& set = static_cast<const EmbreeTileSet&>(scene.tiles);
        closest_on_parts(set.meshes(), rays, hits);
        switch (width_) {
            case 16:
                return closest<16>(set, rays, hits);
            case 8:
                return closest<8>(set, rays, hits);
            default:
                return closest<4>(set, rays, hits);
        }
    }
    void nearest(const Scene& scene, std::span<const Ray> rays, std::uint32_t depth, float gap_m,
                 std::span<HitList> lists) const override {
        refuse_longer_rays(rays, options_.max_range_m);
        depth = std::clamp(depth, 1u, static_cast<std::uint32_t>(kMaxHits));
        nearest_on_parts(scene.parts, rays, depth, gap_m, lists);
        const auto& set = static_cast<const EmbreeTileSet&>(scene.tiles);
        nearest_on_parts(set.meshes(), rays, depth, gap_m, lists);
        switch (width_) {
            case 16:
                return nearest<16>(set, rays, depth, gap_m, lists);
            case 8:
                return nearest<8>(set, rays, depth, gap_m, lists);
            default:
                return nearest<4>(set, rays, depth, gap_m, lists);
        }
    }

  private:
    PacketContext context() const {
        PacketContext context{};
        embree::begin(context.embree);
        context.width = width_;
        context.meet_closest = meet_closest_;
        context.meet_nearest = meet_nearest_;
        return context;
    }

    template <unsigned kWidth>
    void closest(const EmbreeTileSet& set, std::span<const Ray> rays, std::span<Hit> hits) const;
    template <unsigned kWidth>
    void nearest(const EmbreeTileSet& set, std::span<const Ray> rays, std::uint32_t depth, float gap_m,
                 std::span<HitList> lists) const;

    EmbreeOptions options_;
    std::shared_ptr<Device> device_;
    unsigned width_;
    LeafFunction<ClosestLanes> meet_closest_;
    LeafFunction<NearestLanes> meet_nearest_;
};

template <unsigned kWidth>
void EmbreeTracer::closest(const EmbreeTileSet& set, std::span<const Ray> rays, std::span<Hit> hits) const {
    PacketContext packet_context = context();
    ClosestLanes lanes;
    lanes.slots = set.slots();
    packet_context.closest = &lanes;
    PacketTracer<kWidth> packets(set, rays, packet_context);
    for (std::size_t first = 0; first < rays.size(); first += kWidth) {
        const auto count = static_cast<unsigned>(std::min<std::size_t>(kWidth, rays.size() - first));
        float t_max[kMaxPacket];
        for (unsigned k = 0; k < count; ++k) {
            const Hit& known = hits[first + k];
            lanes.earlier[k] = &known;
            lanes.t[k] = t_max[k] = known.exists() ? known.t : rays[first + k].t_max;
            lanes.slot[k] = known.exists() ? kEarlierSlot : kNoSlot;
        }
        lanes.touched = 0;
        packets.trace(first, count, t_max);
        for (unsigned k = 0; k < count; ++k)
            if (lanes.touched >> k & 1)
                hits[first + k] =
                    describe(lanes.t[k], set.views(), {lanes.slot[k], lanes.splat[k]}, rays[first + k]);
    }
}

template <unsigned kWidth>
void EmbreeTracer::nearest(const EmbreeTileSet& set, std::span<const Ray> rays, std::uint32_t depth,
                           float gap_m, std::span<HitList> lists) const {
    PacketContext packet_context = context();
    NearestLanes lanes;
    lanes.depth = depth;
    lanes.reach_m = static_cast<float>(depth - 1) * gap_m;
    lanes.slots = set.slots();
    packet_context.nearest = &lanes;
    PacketTracer<kWidth> packets(set, rays, packet_context);
    for (std::size_t first = 0; first < rays.size(); first += kWidth) {
        const auto count = static_cast<unsigned>(std::min<std::size_t>(kWidth, rays.size() - first));
        float t_max[kMaxPacket];
        for (unsigned k = 0; k < count; ++k) {
            const HitList& known = lists[first + k];
            lanes.earlier[k] = &known;
            t_max[k] = rays[first + k].t_max;
            lanes.count[k] = 0;
            for (std::uint32_t i = 0; i < known.count; ++i)
                lanes.offer(k, known.hits[i].t, {kEarlierSlot, i}, t_max[k]);
        }
        packets.trace(first, count, t_max);
        for (unsigned k = 0; k < count; ++k) {
            HitList& list = lists[first + k];
            const std::uint32_t n = lanes.count_in_reach(k);
            // Earlier hits kept their order, so none of them moved forward: from the back none is
            // overwritten.
            for (std::uint32_t i = n; i-- > 0;) {
                const SplatPlace place = lanes.place[k][i];
                list.hits[i] = place.slot == kEarlierSlot
                                   ? list.hits[place.splat]
                                   : describe(lanes.t[k][i], set.views(), place, rays[first + k]);
            }
            list.count = n;
        }
    }
}

}  // namespace

std::unique_ptr<Tracer> make_embree_tracer(const EmbreeOptions& options) {
    if (options.splats_per_leaf < 1 || options.splats_per_leaf > 64)
        throw UsageError("splats_per_leaf must be from 1 to 64");
    require_range(options.max_range_m);
    return std::make_unique<EmbreeTracer>(options);
}

}  // namespace citysplat::trace
