#pragma once

/// The part of the OptiX device API that optix_programs.cu uses, declared only: where no OptiX SDK is
/// installed, nvcc still checks the programs. What it makes of them cannot be loaded by OptiX.
using OptixTraversableHandle = unsigned long long;
using OptixVisibilityMask = unsigned int;
enum OptixRayFlags { OPTIX_RAY_FLAG_DISABLE_ANYHIT = 1u << 0, OPTIX_RAY_FLAG_DISABLE_CLOSESTHIT = 1u << 3 };

extern "C" {
__device__ uint3 optixGetLaunchIndex();
__device__ unsigned int optixGetInstanceId();
__device__ unsigned int optixGetPrimitiveIndex();
__device__ unsigned int optixGetPayload_0();
__device__ unsigned int optixGetPayload_1();
__device__ unsigned int optixGetPayload_2();
__device__ unsigned int optixGetPayload_3();
__device__ float3 optixGetWorldRayOrigin();
__device__ float3 optixGetWorldRayDirection();
__device__ void optixSetPayload_0(unsigned int);
__device__ void optixSetPayload_1(unsigned int);
__device__ void optixSetPayload_2(unsigned int);
__device__ bool optixReportIntersection(float t, unsigned int kind);
__device__ void optixTrace(OptixTraversableHandle, float3 origin, float3 direction, float t_min, float t_max,
                           float time, OptixVisibilityMask, unsigned int flags, unsigned int sbt_offset,
                           unsigned int sbt_stride, unsigned int miss, unsigned int& payload_0,
                           unsigned int& payload_1, unsigned int& payload_2, unsigned int& payload_3);
}
