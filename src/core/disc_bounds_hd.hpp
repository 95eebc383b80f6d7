#pragma once

#include "core/host_device.hpp"
#include "core/vec_hd.hpp"

#include <cmath>

namespace citysplat {

/// Half extent of the axis-aligned box around a disc: r·sqrt(1 − n²) per axis, widened so that rounding in
/// the box, in the traversal or in a slightly non-unit normal cannot lose a hit on the rim.
CITYSPLAT_HD inline Vec3f disc_reach(Vec3f normal, float radius) {
    constexpr float kRelative = 1.00001f, kAbsolute_m = 1e-4f;
    const auto axis = [radius](float n) {
        const float inside = 1.0f - n * n;
        return radius * std::sqrt(inside > 0 ? inside : 0.0f) * kRelative + kAbsolute_m;
    };
    return {axis(normal.x), axis(normal.y), axis(normal.z)};
}

}  // namespace citysplat
