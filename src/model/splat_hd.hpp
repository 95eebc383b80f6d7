#pragma once

#include "core/math/host_device.hpp"
#include "core/math/vec_hd.hpp"

#include <cmath>
#include <cstdint>

/// How one splat is packed into the columns of a splat tile (model/splat_tile.hpp), and back. Shared by the
/// builder, the CPU tracer and the CUDA decode kernel.
namespace citysplat {

/// The four groups of AdaSplats §3.2.
enum class SplatGroup : std::uint8_t { ground = 0, surface = 1, linear = 2, non_surface = 3 };

/// A splat as the generator makes it: lattice steps from the tile's frame, quantised attributes.
struct Splat {
    std::int32_t x, y, z;  ///< centre, |.| < 2²³
    std::uint32_t normal;  ///< pack_normal()
    std::uint16_t radius;  ///< lattice steps, at least 1
    std::uint16_t label;
    std::uint16_t intensity;   ///< robust mean of its points
    std::uint8_t point_count;  ///< saturates at 255
    SplatGroup group;
    std::uint8_t range;      ///< mean acquisition range in metres, saturates at 254; 255 unknown
    std::uint8_t incidence;  ///< mean acquisition incidence, 254 = 90°; 255 unknown
    std::uint8_t instance;   ///< which object of the payload it belongs to; 0: none (ADR 810)
};

inline constexpr std::uint8_t kUnknownByte = 255;

/// Octahedral map of a unit normal to 2 × 16 bits (error below 0.005°).
CITYSPLAT_HD inline std::uint32_t pack_normal(Vec3d n) {
    const double s = std::fabs(n.x) + std::fabs(n.y) + std::fabs(n.z);
    double u = n.x / s, v = n.y / s;
    if (n.z < 0) {
        const double w = (1.0 - std::fabs(v)) * (u < 0 ? -1.0 : 1.0);
        v = (1.0 - std::fabs(u)) * (v < 0 ? -1.0 : 1.0);
        u = w;
    }
    const auto quantise = [](double a) {
        const double scaled = std::floor(a * 32767.0 + 0.5);
        return static_cast<std::uint32_t>(static_cast<std::int32_t>(scaled)) & 0xffffu;
    };
    return quantise(u) | quantise(v) << 16;
}

/// Unit normal of pack_normal(); float arithmetic in one fixed order, the same on CPU and GPU.
CITYSPLAT_HD inline Vec3f unpack_normal(std::uint32_t packed) {
    float u = static_cast<float>(static_cast<std::int16_t>(packed & 0xffffu)) * (1.0f / 32767.0f);
    float v = static_cast<float>(static_cast<std::int16_t>(packed >> 16)) * (1.0f / 32767.0f);
    const float z = 1.0f - std::fabs(u) - std::fabs(v);
    if (z < 0) {
        const float w = (1.0f - std::fabs(v)) * (u < 0 ? -1.0f : 1.0f);
        v = (1.0f - std::fabs(u)) * (v < 0 ? -1.0f : 1.0f);
        u = w;
    }
    const float inverse = 1.0f / std::sqrt(u * u + v * v + z * z);
    return {u * inverse, v * inverse, z * inverse};
}

/// Position columns keep a signed 24-bit coordinate (±1 km) in the low bits and a byte of attributes above
/// it.
CITYSPLAT_HD constexpr std::uint32_t pack_position(std::int32_t steps, std::uint8_t attribute) {
    return (static_cast<std::uint32_t>(steps) & 0x00ffffffu) | static_cast<std::uint32_t>(attribute) << 24;
}
CITYSPLAT_HD constexpr std::int32_t unpack_position(std::uint32_t packed) {
    return static_cast<std::int32_t>(packed << 8) >> 8;
}
CITYSPLAT_HD constexpr std::uint8_t unpack_attribute(std::uint32_t packed) {
    return static_cast<std::uint8_t>(packed >> 24);
}
inline constexpr std::int32_t kMaxSplatSteps = (1 << 23) - 1;

/// The disc a ray meets: metres in the tile's frame.
struct Disc {
    Vec3f centre;
    float radius;
    Vec3f normal;
};
static_assert(sizeof(Disc) == 28);

/// Exact: a 24-bit integer times a power of two.
CITYSPLAT_HD inline Disc unpack_disc(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t normal,
                                     std::uint16_t radius) {
    constexpr float kStep = 1.0f / 8192.0f;
    return {{static_cast<float>(unpack_position(x)) * kStep, static_cast<float>(unpack_position(y)) * kStep,
             static_cast<float>(unpack_position(z)) * kStep},
            static_cast<float>(radius) * kStep,
            unpack_normal(normal)};
}

}  // namespace citysplat
