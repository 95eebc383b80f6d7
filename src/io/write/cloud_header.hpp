#pragma once

#include "core/math/box.hpp"
#include "io/write/field.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// Headers of the clouds that we write, and the record of a LAS point. The length of a header does not depend
/// on the points, so that it can be written again when they are known.
namespace citysplat::io {

/// What a header must know about the points behind it.
struct CloudSummary {
    std::uint64_t points = 0;
    Box3d box;  ///< of all points; zeros where there are none

    void add(Vec3d p) {
        if (points++ == 0) box = {p, p};
        box.grow(p);
    }
};

using LasSteps = std::array<std::int32_t, 3>;

/// Coordinates as a LAS file stores them: whole steps from an offset.
struct LasGrid {
    Vec3d offset_m{0, 0, 0};
    double scale_m = 0.0001;

    /// Throws InputError when a coordinate, called `of`x, `of`y or `of`z, does not fit 32 bits.
    LasSteps steps(Vec3d p, std::string_view of = "") const {
        const double values[3]{(p.x - offset_m.x) / scale_m + 0.5, (p.y - offset_m.y) / scale_m + 0.5,
                               (p.z - offset_m.z) / scale_m + 0.5};
        LasSteps result{};
        for (std::size_t a = 0; a < 3; ++a) {
            if (!(values[a] >= -2147483647.0 && values[a] < 2147483648.0)) refuse(p, a, of);
            // std::floor() is a call, even where a conversion does.
            const auto whole = static_cast<std::int64_t>(values[a]);
            result[a] = static_cast<std::int32_t>(whole - (static_cast<double>(whole) > values[a]));
        }
        return result;
    }
    Vec3d metres(const LasSteps& s) const {
        return {s[0] * scale_m + offset_m.x, s[1] * scale_m + offset_m.y, s[2] * scale_m + offset_m.z};
    }

  private:
    [[noreturn]] void refuse(Vec3d p, std::size_t axis, std::string_view of) const;
};

struct LasPoint {
    LasSteps place;
    std::uint16_t intensity = 0;
    std::uint16_t label = 0;  ///< above 255: 0 in the record; such labels need a field of their own
    std::uint16_t source = 0;
    std::int16_t scan_angle = 0;  ///< in steps of 0.006°
    bool withheld = false;
    double gps_time = 0;
    std::uint8_t return_number = 1, number_of_returns = 1;  ///< of the pulse; up to 15
};
inline constexpr std::size_t kLasPointBytes = 30;
inline void put_las_point(std::byte*& at, const LasPoint& p) {
    put(at, p.place);
    put(at, p.intensity);
    put(at, static_cast<std::uint8_t>(p.return_number | p.number_of_returns << 4));
    put<std::uint8_t>(at, p.withheld ? 4 : 0);
    put(at, static_cast<std::uint8_t>(p.label < 256 ? p.label : 0));
    put<std::uint8_t>(at, 0);
    put(at, p.scan_angle);
    put(at, p.source);
    put(at, p.gps_time);
}

/// LAS 1.4 R15, point format 6 with extra bytes.
struct LasLayout {
    std::span<const Field> extra;  ///< behind the 30 bytes of a point
    LasGrid grid;
    std::string crs;          ///< WKT or "EPSG:n"; left out when it is neither
    std::string_view system;  ///< what made it
    std::string_view software = "citysplat";
};
/// Throws UsageError when the system is longer than a LAS record can hold.
std::string las_header(const LasLayout& layout, const CloudSummary& summary);

std::string ply_header(std::span<const Field> fields, std::uint64_t points,
                       std::span<const std::string> comments);
std::string pcd_header(std::span<const Field> fields, std::uint64_t points);

}  // namespace citysplat::io
