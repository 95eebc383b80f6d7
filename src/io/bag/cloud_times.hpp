#pragma once

#include "io/bag/ros_messages.hpp"
#include "io/points/table_decoder.hpp"

#include <optional>
#include <string>
#include <vector>

namespace citysplat::io {

/// From the stamps of a bag to the clock of its points.
struct StampClock {
    std::int64_t offset_s = 0;  ///< stamp − time

    double seconds(std::int64_t stamp_ns) const {
        constexpr std::int64_t kSecond_ns = 1'000'000'000;
        std::int64_t offset_ns, time_ns;
        if (!__builtin_mul_overflow(offset_s, kSecond_ns, &offset_ns) &&
            !__builtin_sub_overflow(stamp_ns, offset_ns, &time_ns))
            return static_cast<double>(time_ns) / 1e9;
        // More than 292 years in nanoseconds do not fit.
        return static_cast<double>(stamp_ns / kSecond_ns - offset_s) +
               static_cast<double>(stamp_ns % kSecond_ns) / 1e9;
    }
};

/// How the points of a cloud say when they were measured.
struct CloudTimes {
    enum class Kind {
        none,      ///< all at the stamp
        clock,     ///< seconds on the clock of the points
        relative,  ///< to the stamp
        absolute   ///< as stamps are
    };
    Kind kind = Kind::none;
    Column column{};
    double unit_s = 1;  ///< one of the column

    /// Finds the column: float32 is seconds, uint32 nanoseconds since the stamp; float64 is decided by
    /// `sample`, its value in the first point. "gps_time" of our own bags goes before all others.
    static CloudTimes find(const std::vector<Column>& columns, bool own);
    /// Of float64: what a value of that size must be.
    void decide(double sample);

    /// Times of all records. An InputError that begins with `where` when they are not within seconds of the
    /// stamp.
    std::vector<double> of(const StridedValues& records, std::int64_t stamp_ns, const StampClock& clock,
                           const std::string& where) const;
};

}  // namespace citysplat::io
