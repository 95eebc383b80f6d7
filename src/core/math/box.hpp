#pragma once

#include "core/math/vec_hd.hpp"

#include <algorithm>

namespace citysplat {

/// A box along the axes.
struct Box3d {
    Vec3d min{0, 0, 0}, max{0, 0, 0};

    bool empty() const { return min.x > max.x; }
    void grow(Vec3d p) {
        min = {std::min(min.x, p.x), std::min(min.y, p.y), std::min(min.z, p.z)};
        max = {std::max(max.x, p.x), std::max(max.y, p.y), std::max(max.z, p.z)};
    }
    void grow(const Box3d& b) {
        if (b.empty()) return;
        grow(b.min);
        grow(b.max);
    }
    Box3d widened(double by_m) const {
        const Vec3d by{by_m, by_m, by_m};
        return {min - by, max + by};
    }
};
/// What to grow from.
inline constexpr Box3d kEmptyBox{{1e300, 1e300, 1e300}, {-1e300, -1e300, -1e300}};

}  // namespace citysplat
