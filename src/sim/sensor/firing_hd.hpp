#pragma once

#include "core/math/host_device.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/vec_hd.hpp"

#include <cstdint>

/// Where the rays of a sensor go, ray by ray, in the sensor's frame: x forward, y left, z up. Azimuth turns
/// from x towards y, elevation from the horizon towards z.
namespace citysplat::sim {

/// One emitted pulse of a scan.
struct Firing {
    Vec3f direction;
    float time_s;       ///< since the scan began
    std::uint32_t ray;  ///< place in firing order, the index of the return
    std::uint32_t beam;
};
static_assert(sizeof(Firing) == 24);

CITYSPLAT_HD inline Vec3f direction_of(double azimuth_rad, double elevation_rad) {
    const exact::SinCos a = exact::sin_cos(azimuth_rad), e = exact::sin_cos(elevation_rad);
    return {static_cast<float>(e.cos * a.cos), static_cast<float>(e.cos * a.sin), static_cast<float>(e.sin)};
}

/// One laser of a rotating head.
struct Beam {
    double elevation_rad, azimuth_rad;
    double time_s;  ///< after the column's first
};

/// Columns of beams on a rotating head (AdaSplats eq. 14). While the beams of a column fire one after the
/// other, the head keeps turning.
struct SpinningPattern {
    std::uint32_t beams, columns;
    double first_azimuth_rad, step_rad;  ///< negative step: clockwise seen from above
    double column_time_s;
};
CITYSPLAT_HD inline Firing spinning_firing(const SpinningPattern& p, const Beam& beam,
                                           std::uint32_t beam_index, std::uint32_t column) {
    const double turned = static_cast<double>(column) + beam.time_s / p.column_time_s;
    return {direction_of(p.first_azimuth_rad + p.step_rad * turned + beam.azimuth_rad, beam.elevation_rad),
            static_cast<float>(column * p.column_time_s + beam.time_s), column * p.beams + beam_index,
            beam_index};
}

/// Two counter-rotating prisms: the deflections add up to a rosette whose petals precess, so that the field
/// of view fills with time. `lines` lasers fire in turn, spread across the scan line.
struct RosettePattern {
    std::uint32_t rays, lines;
    double pulse_time_s;
    double first_hz, second_hz;                     ///< of the prisms; opposite signs
    double half_horizontal_rad, half_vertical_rad;  ///< of the field of view
    double line_spacing_rad;
};
CITYSPLAT_HD inline Firing rosette_firing(const RosettePattern& p, std::uint64_t scan, std::uint32_t ray) {
    const std::uint32_t line = ray % p.lines;
    // Whole pulses since the beginning, so that scans join without a seam.
    const double t = static_cast<double>(scan * p.rays + (ray - line)) * p.pulse_time_s;
    const auto turns = [](double v) { return 2 * exact::kPi * (v - std::floor(v)); };
    const exact::SinCos a = exact::sin_cos(turns(p.first_hz * t)), b = exact::sin_cos(turns(p.second_hz * t));
    const double offset = (static_cast<double>(line) - 0.5 * (p.lines - 1)) * p.line_spacing_rad;
    const double reach = 1 - 0.5 * (p.lines - 1) * p.line_spacing_rad / p.half_vertical_rad;
    return {direction_of(p.half_horizontal_rad * 0.5 * (a.cos + b.cos),
                         p.half_vertical_rad * reach * 0.5 * (a.sin + b.sin) + offset),
            static_cast<float>(ray * p.pulse_time_s), ray, line};
}

/// A mirror that nods while the head turns: elevation swings between its limits, azimuth goes round.
struct NoddingPattern {
    std::uint32_t rays, lines;
    double pulse_time_s;
    double turn_hz, nod_hz;
    double low_rad, high_rad;
    double line_spacing_rad;  ///< between lasers, in azimuth
};
CITYSPLAT_HD inline Firing nodding_firing(const NoddingPattern& p, std::uint64_t scan, std::uint32_t ray) {
    const std::uint32_t line = ray % p.lines;
    const double t = static_cast<double>(scan * p.rays + (ray - line)) * p.pulse_time_s;
    const auto fraction = [](double v) { return v - std::floor(v); };
    const double nod = exact::sin(2 * exact::kPi * fraction(p.nod_hz * t));
    return {direction_of(2 * exact::kPi * fraction(p.turn_hz * t) + line * p.line_spacing_rad,
                         0.5 * (p.low_rad + p.high_rad) + 0.5 * (p.high_rad - p.low_rad) * nod),
            static_cast<float>(ray * p.pulse_time_s), ray, line};
}

/// A depth camera: one ray per pixel, all at once. Row 0 is at the top, column 0 on the left.
struct PinholePattern {
    std::uint32_t columns, rows;
    double half_width, half_height;  ///< tangents of half the field of view
};
CITYSPLAT_HD inline Firing pinhole_firing(const PinholePattern& p, std::uint32_t column, std::uint32_t row) {
    const double y = p.half_width * (1 - 2 * (column + 0.5) / p.columns);
    const double z = p.half_height * (1 - 2 * (row + 0.5) / p.rows);
    return {vec_cast<float>(normalized(Vec3d{1, y, z})), 0, row * p.columns + column, row};
}

/// The firings of one scan: a list, or a formula that gives each of them.
struct FiringPlan {
    enum class Kind : std::uint32_t { list, rosette, nodding };

    Kind kind = Kind::list;
    std::uint32_t count = 0;
    const Firing* list = nullptr;
    std::uint64_t scan = 0;  ///< formulas go on from scan to scan
    RosettePattern rosette{};
    NoddingPattern nodding{};
};
static_assert(sizeof(FiringPlan) == 136);

CITYSPLAT_HD inline Firing firing_at(const FiringPlan& plan, std::uint32_t i) {
    switch (plan.kind) {
        case FiringPlan::Kind::rosette:
            return rosette_firing(plan.rosette, plan.scan, i);
        case FiringPlan::Kind::nodding:
            return nodding_firing(plan.nodding, plan.scan, i);
        default:
            return plan.list[i];
    }
}

/// firing_at().ray without the rest: only lists are in another order than the rays.
CITYSPLAT_HD inline std::uint32_t ray_number(const FiringPlan& plan, std::uint32_t i) {
    return plan.kind == FiringPlan::Kind::list ? plan.list[i].ray : i;
}

}  // namespace citysplat::sim
