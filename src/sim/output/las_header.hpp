#pragma once

#include "sim/output/scan_format.hpp"
#include "sim/output/scan_record.hpp"

#include <span>
#include <string>
#include <string_view>

/// LAS 1.4 R15, point format 6 with extra bytes, as the simulation and the export write it. The header has a
/// length that does not depend on the points.
namespace citysplat::sim {

inline constexpr std::size_t kLasPointBytes = 30;  ///< before the extra bytes
inline constexpr double kLasScale_m = 0.0001;

struct LasLayout {
    std::span<const Field> extra;
    Vec3d offset_m;
    std::string_view crs;     ///< WKT, or empty
    std::string_view system;  ///< what made it
};
std::string las_header(const LasLayout& layout, const CloudSummary& summary);

struct LasPoint {
    Vec3d position, offset_m;
    std::uint16_t intensity, label;
    std::uint16_t source;
    double gps_time;
};
/// Writes the 30 bytes and returns the position as a reader will see it.
Vec3d put_las_point(std::byte*& at, const LasPoint& point);

}  // namespace citysplat::sim
