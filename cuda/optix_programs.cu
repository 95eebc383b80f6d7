// The OptiX programs. Which <optix.h> this is decides the include path: the SDK's, cuda/declarations (nvcc
// checks the programs where no SDK is installed), or the double in tests/cuda (g++ runs them on the CPU).
#include "cuda/trace_params_hd.hpp"

#include <optix.h>

// Splats are custom primitives, so an intersection program decides every hit. It keeps the result in the
// payload itself: the order of hits is then ours (distance, splat id) and no other program is needed. It
// reports a distance only to tell the traversal how much of the ray is still of interest. OptiX may ask the
// same splat twice and in any order; neither changes a result.

using namespace citysplat;
using namespace citysplat::gpu;

extern "C" {
__constant__ TraceParams params;
}

namespace {

__device__ float as_float(unsigned bits) { return __uint_as_float(bits); }
__device__ unsigned as_bits(float value) { return __float_as_uint(value); }

/// Which intersection program is asked, and the word of the payload that holds the distance from which on
/// nothing is wanted any more.
struct Question {
    unsigned program, bound_word;
};

__device__ void shoot(unsigned long long traversable, const trace::LocalRay& local, float t_min,
                      const Question& question, unsigned (&payload)[kPayloadWords]) {
    optixTrace(static_cast<OptixTraversableHandle>(traversable),
               make_float3(local.origin.x, local.origin.y, local.origin.z),
               make_float3(local.direction.x, local.direction.y, local.direction.z), t_min,
               as_float(payload[question.bound_word]), 0.0f, OptixVisibilityMask(255),
               OPTIX_RAY_FLAG_DISABLE_ANYHIT | OPTIX_RAY_FLAG_DISABLE_CLOSESTHIT, question.program, 0u, 0u,
               payload[0], payload[1], payload[2], payload[3]);
}

/// Sends a ray through all tiles and parts, each time in their frame.
__device__ void shoot_all(const trace::Ray& ray, const Question& question,
                          unsigned (&payload)[kPayloadWords]) {
    payload[3] = kAmongTiles;
    for (std::uint32_t s = 0; s < params.scene_count; ++s) {
        const SceneView& scene = params.scenes[s];
        const Vec3f origin = trace::local_origin(trace::lattice_origin(ray), scene.anchor);
        shoot(scene.traversable, {origin, ray.direction}, ray.t_min, question, payload);
    }
    for (std::uint32_t p = 0; p < params.part_count; ++p) {
        const PartView& part = params.tables.parts[p];
        if (!part.exists(ray.time_s)) continue;
        payload[3] = p;
        const trace::PoseKey at = trace::pose_at(part.motion, ray.time_s);
        shoot(part.traversable, trace::local_ray(at, ray, part.triangles != nullptr), ray.t_min, question,
              payload);
    }
}

/// Whether the ray under way meets the primitive that the traversal asks for. World ray means: as it was
/// given to optixTrace(), in the part's frame.
__device__ bool meets_primitive(Candidate& hit) {
    const trace::Ray& ray = params.rays[optixGetLaunchIndex().x];
    const unsigned part = optixGetPayload_3();
    hit.place.splat = optixGetPrimitiveIndex();
    if (part == kAmongTiles) {
        hit.place.slot = optixGetInstanceId();
        return meets_splat(params.tables.tiles[hit.place.slot], hit.place.splat, ray, hit.t);
    }
    hit.place.slot = kFirstPartSlot + part;
    const float3 origin = optixGetWorldRayOrigin(), direction = optixGetWorldRayDirection();
    const trace::LocalRay local{{origin.x, origin.y, origin.z}, {direction.x, direction.y, direction.z}};
    return meets_part(params.tables.parts[part], hit.place.splat, local, ray, hit.t);
}

__device__ Nearest& nearest_of_ray() {
    const unsigned long long high = optixGetPayload_1();
    return *reinterpret_cast<Nearest*>(high << 32 | optixGetPayload_0());
}

}  // namespace

extern "C" __global__ void __raygen__closest() {
    const unsigned i = optixGetLaunchIndex().x;
    const trace::Ray ray = params.rays[i];
    unsigned best[kPayloadWords] = {as_bits(ray.t_max), kNoSlot, 0u, 0u};
    shoot_all(ray, {0u, 0u}, best);
    const Candidate hit{as_float(best[0]), {best[1], best[2]}};
    params.hits[i] = hit.place.slot == kNoSlot ? trace::Hit{} : describe(hit, params.tables, ray);
}

extern "C" __global__ void __intersection__closest() {
    Candidate hit;
    if (!meets_primitive(hit)) return;
    const Candidate best{as_float(optixGetPayload_0()), {optixGetPayload_1(), optixGetPayload_2()}};
    if (best.place.slot != kNoSlot && !comes_before(hit, best, params.tables)) return;
    optixSetPayload_0(as_bits(hit.t));
    optixSetPayload_1(hit.place.slot);
    optixSetPayload_2(hit.place.splat);
    optixReportIntersection(hit.t, 0u);
}

extern "C" __global__ void __raygen__nearest() {
    const unsigned i = optixGetLaunchIndex().x;
    const trace::Ray ray = params.rays[i];
    Nearest nearest;
    nearest.count = 0;
    const unsigned long long address = reinterpret_cast<unsigned long long>(&nearest);
    unsigned payload[kPayloadWords] = {static_cast<unsigned>(address), static_cast<unsigned>(address >> 32),
                                       as_bits(ray.t_max), 0u};
    shoot_all(ray, {1u, 2u}, payload);
    const std::uint32_t count = count_within_reach(nearest, params.wanted.reach_m);
    trace::Hit* out = params.hits + static_cast<std::size_t>(i) * params.wanted.depth;
    for (std::uint32_t k = 0; k < count; ++k) out[k] = describe(nearest.hits[k], params.tables, ray);
    if (count < params.wanted.depth) out[count] = trace::Hit{};
}

extern "C" __global__ void __intersection__nearest() {
    Candidate hit;
    if (!meets_primitive(hit)) return;
    const float bound = offer(nearest_of_ray(), hit, params.wanted, params.tables);
    if (!(bound < as_float(optixGetPayload_2()))) return;
    optixSetPayload_2(as_bits(bound));
    optixReportIntersection(bound, 0u);
}
