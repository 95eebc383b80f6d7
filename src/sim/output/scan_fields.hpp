#pragma once

#include "io/write/field.hpp"
#include "sim/scan/scan.hpp"

/// The fields of a return: what LAS (behind its own), PLY and PCD files of scans hold, and docs/sensors.md
/// tells.
namespace citysplat::sim {

/// A return on its way into a file.
struct ReturnPoint {
    const Scan& scan;
    std::uint32_t ray;
    const Return& r;
    Vec3d position;                                         ///< in the frame of the file
    float incidence_deg;                                    ///< 0 where nothing was met
    std::uint8_t return_number = 1, number_of_returns = 1;  ///< of its pulse, nearest first

    double gps_time() const { return scan.time_s + static_cast<double>(r.time_s); }
};

/// What LAS has places for.
inline constexpr auto kPlaceFields = io::field_table<ReturnPoint>(
    io::FieldOf{"x", "m", "", [](const ReturnPoint& p) { return p.position.x; }},
    io::FieldOf{"y", "m", "", [](const ReturnPoint& p) { return p.position.y; }},
    io::FieldOf{"z", "m", "", [](const ReturnPoint& p) { return p.position.z; }},
    io::FieldOf{"gps_time", "s", "time of the pulse", [](const ReturnPoint& p) { return p.gps_time(); }},
    io::FieldOf{"intensity", "", "65535: the full scale",
                [](const ReturnPoint& p) { return p.r.intensity; }});

/// What it has not.
inline constexpr auto kReturnFields = io::field_table<ReturnPoint>(
    io::FieldOf{"range", "m", "measured range, metres", [](const ReturnPoint& p) { return p.r.range_m; }},
    io::FieldOf{"time_offset", "s", "seconds since the scan began",
                [](const ReturnPoint& p) { return p.r.time_s; }},
    io::FieldOf{"nx", "", "normal, towards the sensor", [](const ReturnPoint& p) { return p.r.normal.x; }},
    io::FieldOf{"ny", "", "", [](const ReturnPoint& p) { return p.r.normal.y; }},
    io::FieldOf{"nz", "", "", [](const ReturnPoint& p) { return p.r.normal.z; }},
    io::FieldOf{"incidence", "°", "angle to the normal, degrees",
                [](const ReturnPoint& p) { return p.incidence_deg; }},
    io::FieldOf{"ray", "", "place in firing order", [](const ReturnPoint& p) { return p.ray; }},
    io::FieldOf{"splat_high", "", "id of the splat, upper 32 bits",
                [](const ReturnPoint& p) { return static_cast<std::uint32_t>(p.r.splat_id >> 32); }},
    io::FieldOf{"splat_low", "", "lower 32 bits; both 0: none",
                [](const ReturnPoint& p) { return static_cast<std::uint32_t>(p.r.splat_id); }},
    io::FieldOf{"beam", "", "laser", [](const ReturnPoint& p) { return p.r.beam; }},
    io::FieldOf{"label", "", "semantic class", [](const ReturnPoint& p) { return p.r.label; }},
    io::FieldOf{"instance", "", "of what is not the city; 0: city",
                [](const ReturnPoint& p) { return p.r.instance; }},
    io::FieldOf{"hits", "", "splats that contributed", [](const ReturnPoint& p) { return p.r.hits; }},
    io::FieldOf{"status", "", "0 none 1 return 2 dropped 3 lost",
                [](const ReturnPoint& p) { return p.r.status; }});

/// Of a sensor that reports two returns of a pulse (CloudLayout::several); LAS has places for them.
inline constexpr auto kNumberFields =
    io::field_table<ReturnPoint>(io::FieldOf{"return_number", "", "1: the nearest of its pulse",
                                             [](const ReturnPoint& p) { return p.return_number; }},
                                 io::FieldOf{"number_of_returns", "", "of its pulse",
                                             [](const ReturnPoint& p) { return p.number_of_returns; }});

/// How the surface was recorded when the city was made, on request (CloudLayout::recorded): what networks of
/// one's own can learn from.
inline constexpr auto kRecordedFields =
    io::field_table<ReturnPoint>(io::FieldOf{"recorded_intensity", "", "of the splat's points",
                                             [](const ReturnPoint& p) { return p.r.recorded_intensity; }},
                                 io::FieldOf{"recorded_range", "m", "mean; 255: not known",
                                             [](const ReturnPoint& p) { return p.r.recorded_range_m; }},
                                 io::FieldOf{"recorded_incidence", "", "254: 90 degrees; 255: unknown",
                                             [](const ReturnPoint& p) { return p.r.recorded_incidence; }});

}  // namespace citysplat::sim
