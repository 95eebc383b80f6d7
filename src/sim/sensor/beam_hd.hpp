#pragma once

#include "core/math/host_device.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "core/math/vec_hd.hpp"

#include <cmath>
#include <cstdint>

/// Beams have a width: a pulse is a bundle of sub-rays, each with its share of the energy.
namespace citysplat::sim {

/// Which echoes of a pulse a sensor reports.
enum class ReturnMode : std::uint32_t {
    line,       ///< pulses have no width: one ray, one echo
    first,      ///< the nearest echo
    strongest,  ///< that of the greatest energy
    last,       ///< the farthest
    dual        ///< the strongest and the last; the second strongest when the last is the strongest
};

/// How a sensor's pulses spread, and what it makes of their echoes: one for a whole run.
struct BeamModel {
    ReturnMode mode = ReturnMode::line;
    std::uint32_t rays = 1;  ///< sub-rays of a pulse: 1, or the size of a BundlePattern
    float spread = 0;        ///< tangent of half the divergence
    float resolution_m = 0;  ///< echoes that are no farther apart than this are one
};
static_assert(sizeof(BeamModel) == 16);

CITYSPLAT_HD constexpr std::uint32_t returns_per_pulse(const BeamModel& beam) {
    return beam.mode == ReturnMode::dual ? 2 : 1;
}

inline constexpr std::uint32_t kMostSubRays = 19;

/// A ring of sub-rays around the axis.
struct BundleRing {
    std::uint32_t rays;
    double radius;      ///< as a share of half the divergence
    double weight;      ///< share of the pulse's energy that each of them has
    double first_turn;  ///< where the first of them is
};

/// Sub-rays on the cross-section of a Gaussian beam whose irradiance has fallen to 1/e² at half the
/// divergence and is cut off there. The section is divided into cells of equal area: a disc in the middle and
/// rings around it. A sub-ray's weight is the energy of its cell. It lies at the root mean square radius of
/// its ring's energy (that of the disc goes to the first ring), so that the bundle has the second moment of
/// the beam, 0.3435, which is what the mean range of a slanted plane depends on.
struct BundlePattern {
    double axis_weight;
    BundleRing rings[2];
    /// Largest distance between neighbours when the sub-rays are projected onto a line (0.601 and 0.258 in
    /// units of half the divergence), with a little more for what is rounded.
    double spacing;
};
CITYSPLAT_HD constexpr BundlePattern bundle_pattern(std::uint32_t rays) {
    if (rays == 7)
        return {0.28742089518233627, {{6, 0.694281632115364, 0.11876318413627729, 0}, {0, 0, 0, 0}}, 0.65};
    return {0.11555042296826072,
            {{6, 0.44737486238640883, 0.0812385513078128, 0},
             {12, 0.7870399518590216, 0.03308485576540521, 1.0 / 24}},
            0.28};
}
CITYSPLAT_HD constexpr double weight_of(const BundlePattern& pattern, std::uint32_t k) {
    return k == 0 ? pattern.axis_weight : pattern.rings[k <= pattern.rings[0].rays ? 0 : 1].weight;
}
CITYSPLAT_HD constexpr bool is_bundle(std::uint32_t rays) { return rays == 7 || rays == kMostSubRays; }

/// Calls f(k, direction) for each sub-ray of a pulse. The first one is the axis itself, bit by bit. The
/// bundle is turned about its axis by an angle that is a function of the ray's number alone: neighbouring
/// pulses do not sample an edge in the same way, and without noise nothing is random.
template <class F>
CITYSPLAT_HD inline void for_each_sub_ray(const BeamModel& beam, Vec3f axis, std::uint32_t ray, const F& f) {
    constexpr std::uint64_t kTurns = 0x6265616d;
    const BundlePattern pattern = bundle_pattern(beam.rays);
    f(0u, axis);
    const Vec3d d = vec_cast<double>(axis);
    const Vec3d aside = std::fabs(d.z) < 0.9 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0};
    const double spread = static_cast<double>(beam.spread);
    const Vec3d u = normalized(cross(aside, d)), v = cross(d, u);
    const double turn = rng::uniform(kTurns, ray);
    std::uint32_t k = 1;
    for (const BundleRing& ring : pattern.rings)
        for (std::uint32_t i = 0; i < ring.rays; ++i, ++k) {
            const exact::SinCos a = exact::sin_cos(
                2 * exact::kPi * (turn + ring.first_turn + static_cast<double>(i) / ring.rays));
            const Vec3d off = (a.cos * u + a.sin * v) * (ring.radius * spread);
            f(k, vec_cast<float>(normalized(d + off)));
        }
}

}  // namespace citysplat::sim
