#pragma once

#include "core/math/box.hpp"
#include "core/math/vec_hd.hpp"
#include "trace/ray_disc_hd.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Which tiles a batch of rays can reach. Conservative throughout: a tile too many costs time, never a hit.
namespace citysplat::trace {

/// Throws InputError when a ray is longer than a tracer is made for, UsageError when none can be made for it.
void refuse_longer_rays(std::span<const Ray> rays, float max_range_m);
void require_range(float max_range_m);

/// Distance from a point to a box; 0 inside.
double distance_to_box(Vec3d point, const Box3d& box);

/// Where a ray enters a box, in metres along it; negative when it never does within [0, t_max].
double entry_distance(const Ray& ray, const Box3d& box);

/// A box relative to the batch's anchor (the origin of its first ray), widened for rounding.
struct RelativeBox {
    Vec3f min, max;
};

struct ReachableTile {
    std::size_t slot;  ///< index of the box
    double distance_m;
    RelativeBox relative_box;
};

/// Tiles that at least one ray may reach, nearest first. Throws InputError when a ray is not finite.
std::vector<ReachableTile> find_reachable(std::span<const Box3d> boxes, std::span<const Ray> rays);

/// Slab test of a packet of rays against one box.
template <unsigned kWidth>
struct SlabPacket {
    alignas(64) float origin_x[kWidth], origin_y[kWidth], origin_z[kWidth];
    alignas(64) float inverse_x[kWidth], inverse_y[kWidth], inverse_z[kWidth];

    /// The origin is relative to the batch's anchor.
    void set(unsigned lane, Vec3d origin, Vec3f direction) {
        const Vec3f o = vec_cast<float>(origin);
        origin_x[lane] = o.x;
        origin_y[lane] = o.y;
        origin_z[lane] = o.z;
        inverse_x[lane] = safe_inverse(direction.x);
        inverse_y[lane] = safe_inverse(direction.y);
        inverse_z[lane] = safe_inverse(direction.z);
    }

    /// active[lane] = −1 where the ray enters the box before its t_max, else 0. True when any does.
    bool enter(const RelativeBox& box, const float* t_max, int* active) const {
        int any = 0;
        for (unsigned k = 0; k < kWidth; ++k) {
            const float ax = (box.min.x - origin_x[k]) * inverse_x[k],
                        bx = (box.max.x - origin_x[k]) * inverse_x[k];
            const float ay = (box.min.y - origin_y[k]) * inverse_y[k],
                        by = (box.max.y - origin_y[k]) * inverse_y[k];
            const float az = (box.min.z - origin_z[k]) * inverse_z[k],
                        bz = (box.max.z - origin_z[k]) * inverse_z[k];
            const float near = largest(largest(smallest(ax, bx), smallest(ay, by)), smallest(az, bz));
            const float far = smallest(smallest(largest(ax, bx), largest(ay, by)), largest(az, bz));
            const int inside = -static_cast<int>((near <= far) & (far >= 0.0f) & (near <= t_max[k]));
            active[k] = inside;
            any |= inside;
        }
        return any != 0;
    }

  private:
    static float smallest(float a, float b) { return a < b ? a : b; }
    static float largest(float a, float b) { return a > b ? a : b; }
    /// A large finite number stands for the inverse of zero, so that no slab becomes 0 · ∞.
    static float safe_inverse(float d) {
        constexpr float kLeast = 1e-18f;
        return 1.0f / (std::fabs(d) < kLeast ? std::copysign(kLeast, d) : d);
    }
};

}  // namespace citysplat::trace
