#include "io/bag/cloud_times.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

#include <cmath>

namespace citysplat::io {

namespace {

/// No sweep takes longer.
constexpr double kMostFromStamp_s = 2;

bool is_time_name(const std::string& name) {
    for (const std::string_view known : {"time", "t", "timestamp", "time_stamp", "offset_time"})
        if (name == known) return true;
    return false;
}

}  // namespace

CloudTimes CloudTimes::find(const std::vector<Column>& columns, bool own) {
    for (const Column& column : columns)
        if (own && column.name == "gps_time" && column.type == Scalar::f64) return {Kind::clock, column, 1};
    for (const Column& column : columns) {
        if (!is_time_name(lower_case(column.name))) continue;
        if (column.type == Scalar::f32) return {Kind::relative, column, 1};
        if (column.type == Scalar::u32) return {Kind::relative, column, 1e-9};
        if (column.type == Scalar::f64) return {Kind::absolute, column, 1};
    }
    return {};
}

void CloudTimes::decide(double sample) {
    if (column.type != Scalar::f64 || kind == Kind::clock) return;
    constexpr double kLeastAbsolute_s = 1e6, kLeastNanoseconds = 1e15;
    const double size = std::fabs(sample);
    kind = size < kLeastAbsolute_s ? Kind::relative : Kind::absolute;
    unit_s = size >= kLeastNanoseconds ? 1e-9 : 1;
}

std::vector<double> CloudTimes::of(const StridedValues& records, std::int64_t stamp_ns,
                                   const StampClock& clock, const std::string& where) const {
    const double stamp_s = clock.seconds(stamp_ns);
    std::vector<double> times(records.count, stamp_s);
    if (kind == Kind::none) return times;
    for (std::size_t i = 0; i < records.count; ++i) {
        const double value =
            value_at(records.first + i * records.stride + column.at, column.type, records.big_endian);
        times[i] = kind == Kind::clock      ? value
                   : kind == Kind::relative ? stamp_s + value * unit_s
                                            : value * unit_s - static_cast<double>(clock.offset_s);
        if (!(std::fabs(times[i] - stamp_s) <= kMostFromStamp_s))
            throw InputError(
                where + ": point " + std::to_string(i) + ": the field \"" + column.name + "\" is " +
                format_number(value) + ", " + format_number(times[i] - stamp_s) +
                " s from the stamp; read are seconds (float32), nanoseconds (uint32) since the stamp, and "
                "float64 of either kind");
    }
    return times;
}

}  // namespace citysplat::io
