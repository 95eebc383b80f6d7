#pragma once

#include "core/math/host_device.hpp"
#include "core/math/lattice.hpp"
#include "core/math/rng_hd.hpp"
#include "model/splat_hd.hpp"

#include <cstdint>

namespace citysplat {

/// Everything a return can say about its splat, in world terms: nothing here knows of tiles.
struct SplatIdentity {
    std::int64_t x, y, z;  ///< centre, lattice steps in the world
    std::uint32_t normal;  ///< pack_normal()
    std::uint16_t radius;  ///< lattice steps
    std::uint16_t label, intensity;
    std::uint8_t range, incidence;  ///< as in Splat
};

/// Of a splat in a tile whose frame begins at `origin`.
CITYSPLAT_HD constexpr SplatIdentity identity(const Splat& s, const LatticePoint& origin) {
    return {origin.x + s.x, origin.y + s.y, origin.z + s.z, s.normal,   s.radius,
            s.label,        s.intensity,    s.range,        s.incidence};
}

/// Odd numbers without pattern, for splat_id().
inline constexpr std::uint64_t kIdX = 0x9e3779b97f4a7c15ull, kIdY = 0xc2b2ae3d27d4eb4full,
                               kIdZ = 0xd6e8feb86659fd93ull, kIdShape = 0xa0761d6478bd642full,
                               kIdRecord = 0xe7037ed1a0b428dbull;

/// The name of a splat: a hash of what it is, the same in every tiling of the city. Never 0, which means "no
/// splat". Splats of equal id give equal returns (that two of a billion different splats share an id by
/// accident has a probability of 3 %). Ids are written to files: the formula must not change.
CITYSPLAT_HD constexpr std::uint64_t splat_id(const SplatIdentity& s) {
    const std::uint64_t shape =
        std::uint64_t{s.normal} | std::uint64_t{s.radius} << 32 | std::uint64_t{s.label} << 48;
    const std::uint64_t record =
        std::uint64_t{s.intensity} | std::uint64_t{s.range} << 16 | std::uint64_t{s.incidence} << 24;
    // A sum of products with odd numbers, then a bijection: one collision in 2⁶⁴. For many splats at a time:
    // trace/groups/facts_inl.hpp.
    const std::uint64_t id =
        rng::mix(static_cast<std::uint64_t>(s.x) * kIdX + static_cast<std::uint64_t>(s.y) * kIdY +
                 static_cast<std::uint64_t>(s.z) * kIdZ + shape * kIdShape + record * kIdRecord);
    return id != 0 ? id : 1;
}

}  // namespace citysplat
