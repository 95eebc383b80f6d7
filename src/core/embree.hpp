#pragma once

#if CITYSPLAT_EMBREE_MAJOR >= 4
#include <embree4/rtcore.h>
#else
#include <embree3/rtcore.h>
#endif

/// What differs between Embree 3 and 4, told once: how a ray is sent into a scene, and what its callbacks get
/// to know. For .cpp files only.
namespace citysplat::embree {

#if CITYSPLAT_EMBREE_MAJOR >= 4
using Context = RTCRayQueryContext;

inline void begin(Context& context) { rtcInitRayQueryContext(&context); }

inline RTCIntersectArguments arguments(Context& context, RTCRayQueryFlags flags) {
    RTCIntersectArguments arguments;
    rtcInitIntersectArguments(&arguments);
    arguments.context = &context;
    arguments.flags = flags;
    return arguments;
}
inline void intersect(RTCScene scene, Context& context, RTCRayHit& ray) {
    auto how = arguments(context, RTC_RAY_QUERY_FLAG_INCOHERENT);
    rtcIntersect1(scene, &ray, &how);
}
inline void intersect(const int* valid, RTCScene scene, Context& context, RTCRayHit4& rays) {
    auto how = arguments(context, RTC_RAY_QUERY_FLAG_COHERENT);
    rtcIntersect4(valid, scene, &rays, &how);
}
inline void intersect(const int* valid, RTCScene scene, Context& context, RTCRayHit8& rays) {
    auto how = arguments(context, RTC_RAY_QUERY_FLAG_COHERENT);
    rtcIntersect8(valid, scene, &rays, &how);
}
inline void intersect(const int* valid, RTCScene scene, Context& context, RTCRayHit16& rays) {
    auto how = arguments(context, RTC_RAY_QUERY_FLAG_COHERENT);
    rtcIntersect16(valid, scene, &rays, &how);
}
#else
using Context = RTCIntersectContext;

inline void begin(Context& context) { rtcInitIntersectContext(&context); }

inline void intersect(RTCScene scene, Context& context, RTCRayHit& ray) {
    context.flags = RTC_INTERSECT_CONTEXT_FLAG_INCOHERENT;
    rtcIntersect1(scene, &context, &ray);
}
inline void intersect(const int* valid, RTCScene scene, Context& context, RTCRayHit4& rays) {
    context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
    rtcIntersect4(valid, scene, &context, &rays);
}
inline void intersect(const int* valid, RTCScene scene, Context& context, RTCRayHit8& rays) {
    context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
    rtcIntersect8(valid, scene, &context, &rays);
}
inline void intersect(const int* valid, RTCScene scene, Context& context, RTCRayHit16& rays) {
    context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
    rtcIntersect16(valid, scene, &context, &rays);
}
#endif

}  // namespace citysplat::embree
