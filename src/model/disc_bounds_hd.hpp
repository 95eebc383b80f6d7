#pragma once

#include "core/math/host_device.hpp"
#include "core/math/vec_hd.hpp"

#include <cmath>

namespace citysplat {

/// Half extent of the axis-aligned box around a disc: r·sqrt(1 − n²) per axis, where 1 − n² is the sum of the
/// other two squares (the difference has no digits left where n is near 1), widened so that rounding in the
/// box or in a slightly non-unit normal cannot lose a part of the rim.
CITYSPLAT_HD inline Vec3f disc_reach(Vec3f normal, float radius) {
    constexpr float kRelative = 1.00001f, kAbsolute_m = 1e-4f;
    const auto axis = [radius](float a, float b) {
        return radius * std::sqrt(a * a + b * b) * kRelative + kAbsolute_m;
    };
    return {axis(normal.y, normal.z), axis(normal.z, normal.x), axis(normal.x, normal.y)};
}

}  // namespace citysplat
