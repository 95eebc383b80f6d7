#include "bench/bare_embree_loop.hpp"

#include "core/embree.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>

namespace citysplat::bench {

using namespace citysplat::trace;

BareEmbreeLoop::BareEmbreeLoop(const TileSource& city, Vec3d anchor) : anchor_(anchor) {
    for (std::size_t i = 0; i < city.tiles().size(); ++i) {
        const SplatTile tile = city.load(i);
        const TileFrame f = tile.frame();
        const Vec3d shift =
            Vec3d{static_cast<double>(f.x_m), static_cast<double>(f.y_m), static_cast<double>(f.z_m)} -
            anchor;
        for (std::size_t s = 0; s < tile.size(); ++s) {
            Disc d = tile.disc(s);
            d.centre = vec_cast<float>(vec_cast<double>(d.centre) + shift);
            discs_.push_back(make_trace_disc(d, 0));
            radius_.push_back(d.radius);
        }
    }
    device_ = rtcNewDevice(nullptr);
    scene_ = rtcNewScene(device_);
    RTCGeometry geometry = rtcNewGeometry(device_, RTC_GEOMETRY_TYPE_USER);
    rtcSetGeometryUserPrimitiveCount(geometry, static_cast<unsigned>(discs_.size()));
    rtcSetGeometryUserData(geometry, this);
    rtcSetGeometryBoundsFunction(geometry, &BareEmbreeLoop::bounds, nullptr);
    rtcSetGeometryIntersectFunction(geometry, &BareEmbreeLoop::intersect);
    rtcCommitGeometry(geometry);
    rtcAttachGeometry(scene_, geometry);
    rtcReleaseGeometry(geometry);
    rtcCommitScene(scene_);
}

BareEmbreeLoop::~BareEmbreeLoop() {
    rtcReleaseScene(scene_);
    rtcReleaseDevice(device_);
}

void BareEmbreeLoop::bounds(const RTCBoundsFunctionArguments* a) {
    const auto& self = *static_cast<const BareEmbreeLoop*>(a->geometryUserPtr);
    const TraceDisc& d = self.discs_[a->primID];
    const float r = self.radius_[a->primID];
    const auto reach = [r](float n) { return r * std::sqrt(std::max(0.0f, 1 - n * n)); };
    const Vec3f e{reach(d.normal.x), reach(d.normal.y), reach(d.normal.z)};
    *a->bounds_o = {d.centre.x - e.x, d.centre.y - e.y, d.centre.z - e.z, 0,
                    d.centre.x + e.x, d.centre.y + e.y, d.centre.z + e.z, 0};
}

/// Rays of a packet of n lie by component: origin x, y, z, t_min, direction x, y, z, time, t_max.
void BareEmbreeLoop::intersect(const RTCIntersectFunctionNArguments* a) {
    const auto& self = *static_cast<const BareEmbreeLoop*>(a->geometryUserPtr);
    const TraceDisc& disc = self.discs_[a->primID];
    const unsigned n = a->N;
    auto* const c = reinterpret_cast<float*>(RTCRayHitN_RayN(a->rayhit, n));
    RTCHitN* const hits = RTCRayHitN_HitN(a->rayhit, n);
    float t[16];
    bool inside[16];
    for (unsigned i = 0; i < n; ++i) {
        const Vec3f origin{c[i], c[n + i], c[2 * n + i]}, direction{c[4 * n + i], c[5 * n + i], c[6 * n + i]};
        inside[i] = meets(disc, origin, direction, t[i]);
        inside[i] = inside[i] & (t[i] > c[3 * n + i]) & (t[i] < c[8 * n + i]) & (a->valid[i] != 0);
    }
    for (unsigned i = 0; i < n; ++i) {
        if (!inside[i]) continue;
        c[8 * n + i] = t[i];
        RTCHitN_primID(hits, n, i) = a->primID;
        RTCHitN_geomID(hits, n, i) = a->geomID;
    }
}

std::size_t BareEmbreeLoop::count_hits_of_packet(std::span<const Ray, 8> rays) const {
    alignas(64) RTCRayHit8 p;
    alignas(64) int valid[8];
    for (unsigned k = 0; k < 8; ++k) {
        const Ray& r = rays[k];
        const Vec3f o = vec_cast<float>(r.origin - anchor_);
        valid[k] = -1;
        p.ray.org_x[k] = o.x, p.ray.org_y[k] = o.y, p.ray.org_z[k] = o.z;
        p.ray.dir_x[k] = r.direction.x, p.ray.dir_y[k] = r.direction.y, p.ray.dir_z[k] = r.direction.z;
        p.ray.tnear[k] = r.t_min, p.ray.tfar[k] = r.t_max;
        p.ray.time[k] = 0, p.ray.mask[k] = ~0u, p.ray.id[k] = k, p.ray.flags[k] = 0;
        p.hit.geomID[k] = RTC_INVALID_GEOMETRY_ID;
    }
    embree::Context context;
    embree::begin(context);
    embree::intersect(valid, scene_, context, p);
    return static_cast<std::size_t>(std::count_if(p.hit.geomID, p.hit.geomID + 8,
                                                  [](unsigned id) { return id != RTC_INVALID_GEOMETRY_ID; }));
}

std::size_t BareEmbreeLoop::count_hits(std::span<const Ray> rays) const {
    std::atomic<std::size_t> hits{0};
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, rays.size() / 8, 128), [&](const auto& range) {
        std::size_t found = 0;
        for (std::size_t q = range.begin(); q < range.end(); ++q)
            found += count_hits_of_packet(rays.subspan(q * 8).first<8>());
        hits += found;
    });
    return hits;
}

}  // namespace citysplat::bench
