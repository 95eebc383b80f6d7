#include "datasets/synth/city_scene.hpp"

#include "core/embree.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <malloc.h>
#include <string>
#include <tuple>

namespace citysplat::synth {

namespace {

/// Boxes are that much too large, and t_far too far: more than all float rounding within a kilometre.
constexpr double kSlack_m = 1e-3;
constexpr std::size_t kKinds = std::tuple_size_v<decltype(Geometry::kinds)>;

struct SceneDeleter {
    void operator()(RTCSceneTy* s) const { rtcReleaseScene(s); }
};
using SceneHandle = std::unique_ptr<RTCSceneTy, SceneDeleter>;

/// Which surface won so far: smaller distance, then smaller name.
struct Name {
    Cell cell;
    unsigned kind, index;
    friend auto operator<=>(const Name&, const Name&) = default;
};

}  // namespace

struct BlockFactory::Device {
    RTCDevice device;
    explicit Device(const char* config) : device(rtcNewDevice(config)) {
        if (!device) throw UnavailableError("Embree does not start on this machine (rtcNewDevice failed)");
    }
    ~Device() { rtcReleaseDevice(device); }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
};

class BlockScene {
  public:
    BlockScene(std::shared_ptr<const BlockFactory::Device> device, Cell cell, Geometry geometry);

    Cell cell() const { return cell_; }
    Vec3d origin() const { return origin_; }
    const Geometry& geometry() const { return geometry_; }
    const Box3d& bounds() const { return bounds_; }
    RTCScene scene() const { return scene_.get(); }

  private:
    template <class Primitive>
    void attach(unsigned kind, const std::vector<Primitive>& primitives);

    std::shared_ptr<const BlockFactory::Device> device_;
    Cell cell_;
    Vec3d origin_;
    Geometry geometry_;
    Box3d bounds_;
    SceneHandle scene_;
};

namespace {

/// A ray on its way through Embree. `base` must come first: Embree hands it back to the callbacks.
struct RayQuery {
    embree::Context base;
    Ray ray;  ///< city coordinates
    double t_max;
    bool found = false;
    Name name{};
    Vec3d normal{0, 0, 0};
    const BlockScene* block = nullptr;
};

struct PointQuery {
    const BlockScene* block;
    Vec3d point;  ///< in the block's frame
    double best;
    bool found = false;
    Name name{};
    Look look{};
};

template <class Primitive>
void bounds_callback(const RTCBoundsFunctionArguments* args) {
    const handover::Turn turn(args->geometryUserPtr);
    const auto& block = *static_cast<const BlockScene*>(args->geometryUserPtr);
    const Box3d b = block.geometry().of<Primitive>()[args->primID].bounds().widened(kSlack_m);
    args->bounds_o->lower_x = static_cast<float>(b.min.x);
    args->bounds_o->lower_y = static_cast<float>(b.min.y);
    args->bounds_o->lower_z = static_cast<float>(b.min.z);
    args->bounds_o->upper_x = static_cast<float>(b.max.x);
    args->bounds_o->upper_y = static_cast<float>(b.max.y);
    args->bounds_o->upper_z = static_cast<float>(b.max.z);
}

template <class Primitive, unsigned Kind>
void intersect_callback(const RTCIntersectFunctionNArguments* args) {
    if (!args->valid[0]) return;
    const auto& block = *static_cast<const BlockScene*>(args->geometryUserPtr);
    auto& query = *reinterpret_cast<RayQuery*>(args->context);
    const Ray local{query.ray.origin - block.origin(), query.ray.direction};
    const auto hit = block.geometry().of<Primitive>()[args->primID].intersect(local, query.t_max);
    if (!hit) return;
    const Name name{block.cell(), Kind, args->primID};
    if (query.found && hit->t == query.t_max && query.name < name) return;
    query.found = true;
    query.t_max = hit->t;
    query.name = name;
    query.normal = hit->normal;
    query.block = &block;
    auto& rayhit = *reinterpret_cast<RTCRayHit*>(args->rayhit);
    rayhit.ray.tfar = std::min(rayhit.ray.tfar, static_cast<float>(hit->t + kSlack_m));
    rayhit.hit.geomID = args->geomID;
    rayhit.hit.primID = args->primID;
}

/// Rays go one at a time, and occlusion is not asked for; Embree wants the callback set nevertheless.
void occluded_callback(const RTCOccludedFunctionNArguments*) {}

template <class Primitive, unsigned Kind>
bool nearest_callback(RTCPointQueryFunctionArguments* args) {
    auto& query = *static_cast<PointQuery*>(args->userPtr);
    const Primitive& primitive = query.block->geometry().of<Primitive>()[args->primID];
    const double d = primitive.distance(query.point);
    const Name name{query.block->cell(), Kind, args->primID};
    if (d > query.best || (query.found && d == query.best && query.name < name)) return false;
    query.best = d;
    query.found = true;
    query.name = name;
    query.look = look_at(primitive, query.point);
    args->query->radius = std::min(args->query->radius, static_cast<float>(d + kSlack_m));
    return true;
}

template <std::size_t... Kinds>
constexpr auto nearest_table(std::index_sequence<Kinds...>) {
    using Tuple = decltype(Geometry::kinds);
    return std::array<RTCPointQueryFunction, sizeof...(Kinds)>{
        nearest_callback<typename std::tuple_element_t<Kinds, Tuple>::value_type, Kinds>...};
}
constexpr auto kNearest = nearest_table(std::make_index_sequence<kKinds>());

/// The kind of a geometry is its id in the block's scene.
bool nearest_dispatch(RTCPointQueryFunctionArguments* args) { return kNearest[args->geomID](args); }

template <std::size_t... Kinds>
constexpr auto intersect_table(std::index_sequence<Kinds...>) {
    using Tuple = decltype(Geometry::kinds);
    return std::array<RTCIntersectFunctionN, sizeof...(Kinds)>{
        intersect_callback<typename std::tuple_element_t<Kinds, Tuple>::value_type, Kinds>...};
}
constexpr auto kIntersect = intersect_table(std::make_index_sequence<kKinds>());

}  // namespace

BlockScene::BlockScene(std::shared_ptr<const BlockFactory::Device> device, Cell cell, Geometry geometry)
    : device_(std::move(device)),
      cell_(cell),
      origin_(cell.origin()),
      geometry_(std::move(geometry)),
      bounds_(geometry_.bounds()),
      scene_(rtcNewScene(device_->device)) {
    rtcSetSceneFlags(scene_.get(), RTC_SCENE_FLAG_ROBUST);
    geometry_.for_each_kind([&](unsigned kind, const auto& primitives) { attach(kind, primitives); });
    handover::release(this);
    rtcCommitScene(scene_.get());
    handover::acquire(this);
    if (const RTCError error = rtcGetDeviceError(device_->device); error != RTC_ERROR_NONE)
        throw ResourceError("Embree could not index block (" + std::to_string(cell.i) + ", " +
                            std::to_string(cell.j) + "), error " + std::to_string(error) +
                            "; is memory exhausted?");
}

template <class Primitive>
void BlockScene::attach(unsigned kind, const std::vector<Primitive>& primitives) {
    RTCGeometry g = rtcNewGeometry(device_->device, RTC_GEOMETRY_TYPE_USER);
    rtcSetGeometryUserPrimitiveCount(g, static_cast<unsigned>(primitives.size()));
    rtcSetGeometryUserData(g, this);
    rtcSetGeometryBoundsFunction(
        g, [](const RTCBoundsFunctionArguments* a) { bounds_callback<Primitive>(a); }, nullptr);
    rtcSetGeometryIntersectFunction(g, kIntersect[kind]);
    rtcSetGeometryOccludedFunction(g, occluded_callback);
    rtcCommitGeometry(g);
    rtcAttachGeometryByID(scene_.get(), g, kind);
    rtcReleaseGeometry(g);
}

BlockFactory::BlockFactory(std::uint64_t seed, const char* embree_config)
    : seed_(seed), device_(std::make_shared<const Device>(embree_config)) {}
BlockFactory::~BlockFactory() = default;

std::shared_ptr<const BlockScene> BlockFactory::make(Cell cell) const {
    return std::make_shared<const BlockScene>(device_, cell, make_block(seed_, cell));
}

struct CityScene::Top {
    Vec3d centre;
    std::vector<std::shared_ptr<const BlockScene>> blocks;
    SceneHandle scene;
};

CityScene::CityScene(Cell centre, std::vector<std::shared_ptr<const BlockScene>> blocks)
    : top_(std::make_unique<Top>()) {
    top_->centre = centre.origin();
    top_->blocks = std::move(blocks);
    if (top_->blocks.empty()) return;
    RTCDevice device = rtcGetSceneDevice(top_->blocks.front()->scene());
    top_->scene.reset(rtcNewScene(device));
    rtcReleaseDevice(device);
    rtcSetSceneFlags(top_->scene.get(), RTC_SCENE_FLAG_ROBUST);
    for (const auto& block : top_->blocks) {
        RTCGeometry g = rtcNewGeometry(device, RTC_GEOMETRY_TYPE_INSTANCE);
        rtcSetGeometryInstancedScene(g, block->scene());
        const Vec3d shift = block->origin() - top_->centre;
        const float transform[12] = {1, 0, 0, static_cast<float>(shift.x),
                                     0, 1, 0, static_cast<float>(shift.y),
                                     0, 0, 1, static_cast<float>(shift.z)};
        rtcSetGeometryTransform(g, 0, RTC_FORMAT_FLOAT3X4_ROW_MAJOR, transform);
        rtcCommitGeometry(g);
        rtcAttachGeometry(top_->scene.get(), g);
        rtcReleaseGeometry(g);
    }
    rtcCommitScene(top_->scene.get());
}

CityScene::~CityScene() = default;

namespace {

/// What the winning surface looks like, asked once per ray instead of once per candidate.
Look look_of_hit(const RayQuery& query) {
    const Vec3d p = query.ray.origin + query.t_max * query.ray.direction - query.block->origin();
    Look look{};
    query.block->geometry().for_each_kind([&](unsigned kind, const auto& primitives) {
        if (kind == query.name.kind) look = look_at(primitives[query.name.index], p);
    });
    return look;
}

}  // namespace

std::optional<SceneHit> CityScene::intersect(const Ray& ray, double t_max) const {
    if (!top_->scene) return std::nullopt;
    RayQuery query{};
    embree::begin(query.base);
    query.ray = ray;
    query.t_max = t_max;
    const Vec3f o = vec_cast<float>(ray.origin - top_->centre), d = vec_cast<float>(ray.direction);
    RTCRayHit rayhit{};
    rayhit.ray = {o.x, o.y, o.z, 0, d.x, d.y, d.z, 0, static_cast<float>(t_max + kSlack_m), ~0u, 0, 0};
    rayhit.hit.geomID = rayhit.hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
    embree::intersect(top_->scene.get(), query.base, rayhit);
    if (!query.found) return std::nullopt;
    return SceneHit{query.t_max, query.normal, look_of_hit(query)};
}

std::optional<SceneNearest> CityScene::nearest(Vec3d p, double d_max) const {
    PointQuery query{nullptr, p, d_max};
    for (const auto& block : top_->blocks) {
        query.block = block.get();
        query.point = p - block->origin();
        const Box3d& b = block->bounds();
        const double dx = std::max({b.min.x - query.point.x, query.point.x - b.max.x, 0.0});
        const double dy = std::max({b.min.y - query.point.y, query.point.y - b.max.y, 0.0});
        if (dx * dx + dy * dy > query.best * query.best) continue;
        RTCPointQueryContext context;
        rtcInitPointQueryContext(&context);
        const Vec3f q = vec_cast<float>(query.point);
        RTCPointQuery embree_query{q.x, q.y, q.z, 0, static_cast<float>(query.best + kSlack_m)};
        rtcPointQuery(block->scene(), &embree_query, &context, nearest_dispatch, &query);
    }
    if (!query.found) return std::nullopt;
    return SceneNearest{query.best, query.look};
}

std::vector<Cell> cells_near(double x0, double y0, double x1, double y1, double reach_m) {
    const double reach = reach_m + kOverhang_m;
    const Cell low = cell_at(x0 - reach, y0 - reach), high = cell_at(x1 + reach, y1 + reach);
    std::vector<Cell> cells;
    for (std::int32_t i = low.i; i <= high.i; ++i)
        for (std::int32_t j = low.j; j <= high.j; ++j) {
            const CellCorner c = corner_of({i, j});
            const double dx = std::max({c.x0 - x1, x0 - (c.x0 + plan::kPitch), 0.0});
            const double dy = std::max({c.y0 - y1, y0 - (c.y0 + plan::kPitch), 0.0});
            if (dx * dx + dy * dy <= reach * reach) cells.push_back({i, j});
        }
    return cells;
}

std::shared_ptr<const CityScene> BlockCache::scene(Cell centre, std::span<const Cell> cells) {
    if (scene_ && centre == centre_ && std::equal(cells.begin(), cells.end(), cells_.begin(), cells_.end()))
        return scene_;
    centre_ = centre;
    cells_.assign(cells.begin(), cells.end());
    std::vector<std::shared_ptr<const BlockScene>> wanted(cells.size());
    for (std::size_t k = 0; k < cells.size(); ++k)
        if (const auto found = blocks_.find(cells[k]); found != blocks_.end())
            wanted[k] = found->second.block;
    // Isolated: a thread that waits for its blocks must not start unrelated work on top of them.
    tbb::this_task_arena::isolate([&] {
        parallel_for(cells.size(), [&](std::size_t k) {
            if (!wanted[k]) wanted[k] = factory_.make(cells[k]);
        });
        ++clock_;
        for (std::size_t k = 0; k < cells.size(); ++k) blocks_[cells[k]] = {wanted[k], clock_};
        scene_ = std::make_shared<const CityScene>(centre, std::move(wanted));
    });
    evict();
    return scene_;
}

void BlockCache::evict() {
    const std::size_t allowed = std::max(capacity_, cells_.size());
    if (blocks_.size() <= allowed) return;
    while (blocks_.size() > allowed) {
        const auto oldest = std::min_element(
            blocks_.begin(), blocks_.end(),
            [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
        blocks_.erase(oldest);
    }
    // A block is thousands of allocations of all sizes. Left to itself the allocator keeps what lies free
    // between those of later blocks, and the process grows with the drive although its heap does not.
    ::malloc_trim(0);
}

}  // namespace citysplat::synth
