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

__device__ void shoot(const SceneView& scene, const trace::Ray& ray, float t_max, unsigned program,
                      unsigned (&payload)[kPayloadWords]) {
    const Vec3f origin = trace::local_origin(trace::lattice_origin(ray), scene.anchor);
    optixTrace(static_cast<OptixTraversableHandle>(scene.traversable),
               make_float3(origin.x, origin.y, origin.z),
               make_float3(ray.direction.x, ray.direction.y, ray.direction.z), ray.t_min, t_max, 0.0f,
               OptixVisibilityMask(255), OPTIX_RAY_FLAG_DISABLE_ANYHIT | OPTIX_RAY_FLAG_DISABLE_CLOSESTHIT,
               program, 0u, 0u, payload[0], payload[1], payload[2]);
}

__device__ Nearest& nearest_of_ray() {
    const unsigned long long high = optixGetPayload_1();
    return *reinterpret_cast<Nearest*>(high << 32 | optixGetPayload_0());
}

}  // namespace

extern "C" __global__ void __raygen__closest() {
    const unsigned i = optixGetLaunchIndex().x;
    const trace::Ray ray = params.rays[i];
    unsigned best[kPayloadWords] = {as_bits(ray.t_max), kNoSlot, 0u};
    for (std::uint32_t s = 0; s < params.scene_count; ++s)
        shoot(params.scenes[s], ray, as_float(best[0]), 0u, best);
    const Candidate hit{as_float(best[0]), {best[1], best[2]}};
    params.hits[i] = hit.place.slot == kNoSlot ? trace::Hit{} : describe(hit, params.tiles, ray);
}

extern "C" __global__ void __intersection__closest() {
    const unsigned slot = optixGetInstanceId();
    Candidate hit{0, {slot, optixGetPrimitiveIndex()}};
    const trace::Ray& ray = params.rays[optixGetLaunchIndex().x];
    if (!meets_splat(params.tiles[slot], hit.place.splat, ray, params.frame, hit.t)) return;
    const Candidate best{as_float(optixGetPayload_0()), {optixGetPayload_1(), optixGetPayload_2()}};
    if (best.place.slot != kNoSlot && !comes_before(hit, best, params.tiles)) return;
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
                                       as_bits(ray.t_max)};
    for (std::uint32_t s = 0; s < params.scene_count; ++s)
        shoot(params.scenes[s], ray, as_float(payload[2]), 1u, payload);
    const std::uint32_t count = count_within_reach(nearest, params.wanted.reach_m);
    trace::Hit* out = params.hits + static_cast<std::size_t>(i) * params.wanted.depth;
    for (std::uint32_t k = 0; k < count; ++k) out[k] = describe(nearest.hits[k], params.tiles, ray);
    if (count < params.wanted.depth) out[count] = trace::Hit{};
}

extern "C" __global__ void __intersection__nearest() {
    const unsigned slot = optixGetInstanceId();
    Candidate hit{0, {slot, optixGetPrimitiveIndex()}};
    const trace::Ray& ray = params.rays[optixGetLaunchIndex().x];
    if (!meets_splat(params.tiles[slot], hit.place.splat, ray, params.frame, hit.t)) return;
    const float bound = offer(nearest_of_ray(), hit, params.wanted, params.tiles);
    if (!(bound < as_float(optixGetPayload_2()))) return;
    optixSetPayload_2(as_bits(bound));
    optixReportIntersection(bound, 0u);
}
