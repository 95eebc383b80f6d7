#pragma once

#include "cuda/on_cpu/cuda_double.hpp"
#include "cuda/on_cpu/traversal.hpp"

/// Stands in for <optix.h>: with it g++ compiles optix_programs.cu, and traversal.hpp runs the programs.
using OptixTraversableHandle = unsigned long long;
using OptixVisibilityMask = unsigned int;
enum OptixRayFlags { OPTIX_RAY_FLAG_DISABLE_ANYHIT = 1u << 0, OPTIX_RAY_FLAG_DISABLE_CLOSESTHIT = 1u << 3 };

inline uint3 optixGetLaunchIndex() { return {citysplat::on_cpu::current().launch_index, 0, 0}; }
inline unsigned optixGetInstanceId() { return citysplat::on_cpu::current().in_intersection().instance_id; }
inline unsigned optixGetPrimitiveIndex() { return citysplat::on_cpu::current().in_intersection().primitive; }
inline unsigned optixGetPayload_0() { return citysplat::on_cpu::current().in_intersection().payload[0]; }
inline unsigned optixGetPayload_1() { return citysplat::on_cpu::current().in_intersection().payload[1]; }
inline unsigned optixGetPayload_2() { return citysplat::on_cpu::current().in_intersection().payload[2]; }
inline unsigned optixGetPayload_3() { return citysplat::on_cpu::current().in_intersection().payload[3]; }
inline float3 optixGetWorldRayOrigin() {
    const citysplat::Vec3f v = citysplat::on_cpu::current().in_intersection().origin;
    return {v.x, v.y, v.z};
}
inline float3 optixGetWorldRayDirection() {
    const citysplat::Vec3f v = citysplat::on_cpu::current().in_intersection().direction;
    return {v.x, v.y, v.z};
}
inline void optixSetPayload_0(unsigned v) { citysplat::on_cpu::current().in_intersection().payload[0] = v; }
inline void optixSetPayload_1(unsigned v) { citysplat::on_cpu::current().in_intersection().payload[1] = v; }
inline void optixSetPayload_2(unsigned v) { citysplat::on_cpu::current().in_intersection().payload[2] = v; }
inline bool optixReportIntersection(float t, unsigned kind) {
    return citysplat::on_cpu::current().in_intersection().report(t, kind);
}

inline void optixTrace(OptixTraversableHandle scene, float3 origin, float3 direction, float t_min,
                       float t_max, float /*time*/, OptixVisibilityMask mask, unsigned flags,
                       unsigned sbt_offset, unsigned /*sbt_stride*/, unsigned /*miss*/, unsigned& p0,
                       unsigned& p1, unsigned& p2, unsigned& p3) {
    citysplat::on_cpu::RayState ray;
    ray.origin = {origin.x, origin.y, origin.z};
    ray.direction = {direction.x, direction.y, direction.z};
    ray.t_min = t_min;
    ray.t_max = t_max;
    ray.mask = mask;
    ray.hit_record = sbt_offset;
    ray.only_intersection =
        flags == (unsigned{OPTIX_RAY_FLAG_DISABLE_ANYHIT} | unsigned{OPTIX_RAY_FLAG_DISABLE_CLOSESTHIT});
    ray.payload[0] = p0;
    ray.payload[1] = p1;
    ray.payload[2] = p2;
    ray.payload[3] = p3;
    citysplat::on_cpu::trace(scene, ray);
    p0 = ray.payload[0];
    p1 = ray.payload[1];
    p2 = ray.payload[2];
    p3 = ray.payload[3];
}
