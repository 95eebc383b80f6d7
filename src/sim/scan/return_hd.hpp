#pragma once

#include "core/math/math_hd.hpp"
#include "core/math/vec_hd.hpp"
#include "model/splat_hd.hpp"
#include "sim/sensor/beam_hd.hpp"
#include "sim/sensor/firing_hd.hpp"
#include "sim/sensor/sensor_model_hd.hpp"
#include "trace/hit_hd.hpp"
#include "trace/ray_disc_hd.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

/// From what a ray hit to what the sensor reports.
namespace citysplat::sim {

/// What became of a ray.
enum class RayStatus : std::uint8_t {
    none = 0,     ///< nothing within range
    hit = 1,      ///< a return
    dropped = 2,  ///< the sensor's drop model swallowed it
    missing = 3   ///< it would have crossed a tile that could not be loaded (--allow-missing)
};

/// One ray of a scan and its return. The first kDigestedBytes of these records, in ray order, make the digest
/// of a scan; what follows tells how the surface was recorded, which says nothing about the scan.
struct Return {
    Vec3d position;          ///< world, metres; of a ray without return: where it would be at maximum range
    float range_m;           ///< as measured: with bias and noise
    float time_s;            ///< since the scan began
    Vec3f normal;            ///< of the splat, turned towards the sensor
    float cosine;            ///< of the incidence angle
    std::uint64_t splat_id;  ///< of the (first) splat hit; 0: none
    std::uint16_t beam;
    std::uint16_t label, intensity;
    std::uint8_t hits;  ///< splats that contributed
    RayStatus status;
    std::uint16_t recorded_intensity;  ///< of the (first) splat hit, before the sensor's intensity model
    std::uint8_t recorded_range_m;     ///< Splat::range
    std::uint8_t recorded_incidence;   ///< Splat::incidence
    std::uint16_t instance;            ///< of the part (trace/part.hpp) that was met; 0: of the city
    std::uint16_t reserved;
};
static_assert(sizeof(Return) == 72);
inline constexpr std::size_t kDigestedBytes = 64;
static_assert(offsetof(Return, recorded_intensity) == kDigestedBytes);

/// Angle to the normal, in degrees. Requires a cosine from 0 to 1.
CITYSPLAT_HD inline float incidence_deg(float cosine) {
    return static_cast<float>(exact::acos(static_cast<double>(cosine)) * exact::kDegreesPerRad);
}

/// How a sensor makes returns of hits: one for a whole run.
struct ReturnModel {
    RangeError error;
    IntensityModel intensity;
    double drop_probability = 0;
    double min_cosine = 0;    ///< of the incidence angle; what grazes more is dropped
    std::uint32_t depth = 1;  ///< D of AdaSplats §6.3.4; 1: the closest hit
    float gap_m = 0;          ///< greatest distance between consecutive hits of one surface
    std::uint32_t noise = 1;  ///< 0: neither error nor drops
    std::uint32_t reserved = 0;
    BeamModel beam;
};
static_assert(sizeof(ReturnModel) == 104);

/// The hits of a ray that make one return.
struct Echo {
    const trace::Hit* first;  ///< nullptr: nothing was hit
    double range_m;           ///< true range
    std::uint32_t hits;       ///< splats that contribute
};
CITYSPLAT_HD inline Echo echo_of(const trace::Hit& hit) {
    if (!hit.exists()) return {nullptr, 0, 0};
    return {&hit, hit.range_m, 1};
}
/// Of the nearest `count` hits of a ray.
CITYSPLAT_HD inline Echo echo_of(const trace::Hit* hits, std::uint32_t count, float gap_m) {
    const std::uint32_t n = trace::surface_depth(hits, count, gap_m);
    if (n == 0) return {nullptr, 0, 0};
    return {hits, trace::weighted_range(hits, n), n};
}

/// A pulse on its way: whose it is, and where it goes.
struct Pulse {
    const ReturnModel& model;
    std::uint64_t scan;  ///< the scan's scan_key()
    const Firing& firing;
    const trace::Ray& ray;
    std::uint32_t number = 0;  ///< 1: its second return
};
/// Whose random numbers a return takes: the second ones of pulses have others than the first.
CITYSPLAT_HD constexpr std::uint64_t noise_ray(std::uint32_t ray, std::uint32_t number) {
    return ray | static_cast<std::uint64_t>(number) << 32;
}

/// What takes arithmetic to find out of an echo.
struct Measurement {
    Vec3f normal;
    float cosine;
    double range_m;
};
/// Requires an echo that exists. sim/scan/return_lanes.hpp does it for many pulses at a time.
CITYSPLAT_HD inline Measurement measurement_of(const Pulse& pulse, const Echo& echo) {
    const Vec3f normal = unpack_normal(echo.first->normal);
    const float along = dot(normal, pulse.ray.direction), steepness = std::fabs(along);
    Measurement m{along > 0 ? -normal : normal, steepness > 1 ? 1 : steepness, echo.range_m};
    if (pulse.model.noise)
        m.range_m = measured_range(m.range_m, pulse.model.error, pulse.scan,
                                   noise_ray(pulse.firing.ray, pulse.number));
    return m;
}

/// Of a pulse that met nothing.
CITYSPLAT_HD inline Return empty_return(const Firing& firing, const trace::Ray& ray) {
    Return r{};
    r.time_s = firing.time_s;
    r.beam = static_cast<std::uint16_t>(firing.beam);
    r.recorded_range_m = r.recorded_incidence = kUnknownByte;
    r.range_m = ray.t_max;
    r.position = ray.origin + vec_cast<double>(ray.direction) * static_cast<double>(ray.t_max);
    return r;
}

CITYSPLAT_HD inline Return return_of(const Pulse& pulse, const Echo& echo, const Measurement& measured) {
    const ReturnModel& model = pulse.model;
    const double cosine = static_cast<double>(measured.cosine);
    const bool dropped = model.noise && is_dropped(cosine, model.drop_probability, model.min_cosine,
                                                   pulse.scan, noise_ray(pulse.firing.ray, pulse.number));
    return {pulse.ray.origin + vec_cast<double>(pulse.ray.direction) * measured.range_m,
            static_cast<float>(measured.range_m),
            pulse.firing.time_s,
            measured.normal,
            measured.cosine,
            echo.first->splat_id,
            static_cast<std::uint16_t>(pulse.firing.beam),
            echo.first->label,
            measured_intensity(*echo.first, cosine, model.intensity),
            static_cast<std::uint8_t>(echo.hits),
            dropped ? RayStatus::dropped : RayStatus::hit,
            echo.first->intensity,
            echo.first->acquired_range_m,
            echo.first->acquired_incidence,
            echo.first->instance,
            0};
}
CITYSPLAT_HD inline Return return_of(const Pulse& pulse, const Echo& echo) {
    if (!echo.first) return empty_return(pulse.firing, pulse.ray);
    return return_of(pulse, echo, measurement_of(pulse, echo));
}

}  // namespace citysplat::sim
