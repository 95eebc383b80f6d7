#include "io/points/table_decoder.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/lattice.hpp"
#include "core/text.hpp"
#include "io/bytes_le.hpp"
#include "io/points/point_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::io {

namespace {

/// Lower-case names of each role, best first. CloudCompare writes "scalar_NAME"; the prefix is ignored.
struct RoleNames {
    Role role;
    std::initializer_list<std::string_view> names;
};
const RoleNames kNames[] = {
    {Role::x, {"x"}},
    {Role::y, {"y"}},
    {Role::z, {"z"}},
    {Role::gps_time, {"gps_time", "gpstime", "gps time", "time", "timestamp", "t"}},
    {Role::intensity, {"intensity", "reflectance", "reflectivity", "remission", "amplitude", "i"}},
    {Role::label,
     {"class", "classification", "semantic", "sem_class", "semantic_label", "category", "objtag", "label"}},
    {Role::instance, {"instance", "instance_id", "instance_label", "object_id", "objidx", "label"}},
    {Role::scan_angle, {"scan_angle_deg", "scan_angle", "scananglerank", "scan_angle_rank"}},
    {Role::sensor_x, {"sensor_x", "x_origin", "x_lidar_position", "origin_x"}},
    {Role::sensor_y, {"sensor_y", "y_origin", "y_lidar_position", "origin_y"}},
    {Role::sensor_z, {"sensor_z", "z_origin", "z_lidar_position", "origin_z"}},
    {Role::withheld, {"withheld"}},
    {Role::beam, {"ring", "beam", "laser_id", "laserid", "channel"}},
};

std::string plain_name(std::string_view name) {
    std::string out = lower_case(name);
    for (const std::string_view prefix : {"//", "scalar_"})
        if (out.starts_with(prefix)) out.erase(0, prefix.size());
    return out;
}

bool is_float(Scalar type) { return type == Scalar::f32 || type == Scalar::f64; }

/// Calls `use` with a value of the C++ type.
template <class Use>
void with_type(Scalar type, Use&& use) {
    switch (type) {
        case Scalar::i8:
            return use(std::int8_t{});
        case Scalar::u8:
            return use(std::uint8_t{});
        case Scalar::i16:
            return use(std::int16_t{});
        case Scalar::u16:
            return use(std::uint16_t{});
        case Scalar::i32:
            return use(std::int32_t{});
        case Scalar::u32:
            return use(std::uint32_t{});
        case Scalar::i64:
            return use(std::int64_t{});
        case Scalar::u64:
            return use(std::uint64_t{});
        case Scalar::f32:
            return use(float{});
        case Scalar::f64:
            return use(double{});
    }
}

/// Calls `take(i, value)` for the values of a column.
template <class Take>
void for_each_value(Scalar type, const StridedValues& v, Take&& take) {
    with_type(type, [&]<class T>(T) {
        if (v.big_endian)
            for (std::size_t i = 0; i < v.count; ++i)
                take(i, static_cast<double>(load_be<T>(v.first + i * v.stride)));
        else
            for (std::size_t i = 0; i < v.count; ++i)
                take(i, static_cast<double>(load_le<T>(v.first + i * v.stride)));
    });
}

/// Characters of a list of columns in a message.
constexpr std::size_t kMostListed = 200;

}  // namespace

std::size_t bytes_of(Scalar type) {
    std::size_t bytes = 0;
    with_type(type, [&](auto v) { bytes = sizeof v; });
    return bytes;
}

double value_at(const std::byte* at, Scalar type, bool big_endian) {
    double value = 0;
    with_type(type, [&](auto v) {
        using T = decltype(v);
        value = static_cast<double>(big_endian ? load_be<T>(at) : load_le<T>(at));
    });
    return value;
}

TableDecoder::TableDecoder(std::vector<Column> columns, std::string file_name, const ReadOptions& options,
                           TableConvention convention)
    : columns_(std::move(columns)),
      file_name_(std::move(file_name)),
      salvage_(options.salvage),
      furthest_(options.units == ReadOptions::Units::as_is ? 1e300 : kMaxWorld_m),
      label_path_(options.labels),
      convention_(convention) {
    column_of_.fill(kNone);
    find_roles();
    if (options.intensity_range) {
        intensity_given_ = true;
        std::tie(intensity_low_, intensity_high_) = *options.intensity_range;
        if (!std::isfinite(intensity_low_) || !std::isfinite(intensity_high_) ||
            intensity_low_ == intensity_high_)
            throw UsageError("the range of intensity needs two different numbers");
    } else if (has(Role::intensity)) {
        const Scalar type = columns_[column_of_[static_cast<std::size_t>(Role::intensity)]].type;
        if (type == Scalar::u8 || type == Scalar::i8) intensity_high_ = 255;
    }
}

void TableDecoder::find_roles() {
    for (const auto& [role, names] : kNames) {
        std::size_t& found = column_of_[static_cast<std::size_t>(role)];
        for (const std::string_view name : names) {
            for (std::size_t c = 0; c < columns_.size() && found == kNone; ++c) {
                const bool taken =
                    role == Role::instance && c == column_of_[static_cast<std::size_t>(Role::label)];
                if (!taken && plain_name(columns_[c].name) == name) found = c;
            }
        }
    }
    std::string listed;
    for (const auto& c : columns_) listed += (listed.empty() ? "" : ", ") + c.name;
    if (listed.size() > kMostListed) listed = listed.substr(0, kMostListed) + "…";
    for (const Role role : {Role::x, Role::y, Role::z}) {
        const std::string name(1, static_cast<char>('x' + static_cast<int>(role)));
        if (!has(role)) throw InputError(file_name_ + ": no column \"" + name + "\"; the file has " + listed);
        const auto same = std::count_if(columns_.begin(), columns_.end(),
                                        [&](const Column& c) { return plain_name(c.name) == name; });
        if (same > 1) throw InputError(file_name_ + ": the column \"" + name + "\" is there twice");
    }
    constexpr Role kSensor[]{Role::sensor_x, Role::sensor_y, Role::sensor_z};
    const auto axes = std::count_if(std::begin(kSensor), std::end(kSensor), [&](Role r) { return has(r); });
    if (axes == 1 || axes == 2) {
        notes_.push_back(kHalfSensor);
        for (const Role role : kSensor) column_of_[static_cast<std::size_t>(role)] = kNone;
    }
    auto& time = column_of_[static_cast<std::size_t>(Role::gps_time)];
    if (time != kNone && !is_float(columns_[time].type)) {
        notes_.push_back("the column \"" + columns_[time].name +
                         "\" holds whole numbers of an unknown unit and is not used as time");
        time = kNone;
    }
}

void TableDecoder::describe(PointFileInfo& info) const {
    info.has_gps_time = has(Role::gps_time);
    info.has_intensity = has(Role::intensity);
    info.has_label = has_label();
    info.has_instance = has_instance();
    info.has_sensor = has_sensor();
    for (const auto& c : columns_) info.columns.push_back(c.name);
    info.notes.insert(info.notes.end(), notes_.begin(), notes_.end());
}

void TableDecoder::use_labels(std::uint64_t records) {
    if (!label_path_.empty()) labels_ = std::make_shared<const LabelFile>(label_path_, records);
}

bool TableDecoder::wants_intensity_sample() const {
    return has(Role::intensity) && !intensity_given_ &&
           is_float(columns_[column_of_[static_cast<std::size_t>(Role::intensity)]].type);
}

void TableDecoder::choose_intensity_range(std::span<const double> sample) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const double v : sample)
        if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
    if (low > high) return;
    if (low < 0) {
        // Decibels, or a signed scale: RIEGL reflectance lies between −25 and +5 dB.
        intensity_low_ = std::min(-25.0, std::floor(low / 25) * 25);
        intensity_high_ = std::max(5.0, std::ceil(high / 5) * 5);
    } else {
        intensity_high_ = high <= 1 ? 1 : high <= 255 ? 255 : 65535;
    }
    notes_.push_back(
        "intensity from " + format_number(intensity_low_) + " to " + format_number(intensity_high_) +
        " is taken as the full scale, judging by the first points; --intensity-range says otherwise");
}

void TableDecoder::begin(PointBatch& out, std::size_t n) const {
    out.no_return = out.damaged = 0;
    out.masked = {};
    out.empty_rays.clear();
    out.first_bad_label.reset();
    for (auto* column : {&out.x, &out.y, &out.z}) column->resize(n);
    out.gps_time.resize(has(Role::gps_time) ? n : 0);
    out.intensity.resize(has(Role::intensity) ? n : 0);
    out.label.resize(has_label() ? n : 0);
    out.instance.resize(has_instance() ? n : 0);
    out.scan_angle_deg.resize(has(Role::scan_angle) ? n : 0);
    out.sensor.resize(has_sensor() ? n : 0);
    out.withheld.resize(has(Role::withheld) ? n : 0);
    out.beam.resize(has(Role::beam) ? n : 0);
    if (convention_.constant_sensor)
        std::fill(out.sensor.begin(), out.sensor.end(), to_metres(*convention_.constant_sensor));
}

Vec3d TableDecoder::to_metres(Vec3d p) const {
    const Vec3d q = p + convention_.offset, &metres = convention_.metres_per_unit;
    return {q.x * metres.x, q.y * metres.y, q.z * metres.z};
}

void TableDecoder::store(Role role, double v, PointBatch& out, std::size_t i) const {
    const Vec3d &offset = convention_.offset, &metres = convention_.metres_per_unit;
    switch (role) {
        case Role::x:
            out.x[i] = (v + offset.x) * metres.x;
            break;
        case Role::y:
            out.y[i] = (v + offset.y) * metres.y;
            break;
        case Role::z:
            out.z[i] = (v + offset.z) * metres.z;
            break;
        case Role::gps_time:
            out.gps_time[i] = v;
            break;
        case Role::intensity: {
            const double s = (v - intensity_low_) / (intensity_high_ - intensity_low_) * 65535.0 + 0.5;
            out.intensity[i] = static_cast<std::uint16_t>(s >= 65535 ? 65535 : s > 0 ? s : 0);
            break;
        }
        case Role::label:
            store_label(v, out, i);
            break;
        case Role::instance:
            store_instance(v, out, i);
            break;
        case Role::scan_angle:
            out.scan_angle_deg[i] = static_cast<float>(v);
            break;
        case Role::sensor_x:
            out.sensor[i].x = (v + offset.x) * metres.x;
            break;
        case Role::sensor_y:
            out.sensor[i].y = (v + offset.y) * metres.y;
            break;
        case Role::sensor_z:
            out.sensor[i].z = (v + offset.z) * metres.z;
            break;
        case Role::withheld:
            out.withheld[i] = v != 0;
            break;
        case Role::beam:
            out.beam[i] = v >= 0 && v < PointBatch::kNoBeam && v == std::floor(v)
                              ? static_cast<std::uint16_t>(v)
                              : PointBatch::kNoBeam;
            break;
    }
}

void TableDecoder::store_strided(std::size_t r, const StridedValues& values, PointBatch& out,
                                 std::size_t at) const {
    const Role role = static_cast<Role>(r);
    for_each_value(columns_[column_of_[r]].type, values,
                   [&](std::size_t i, double v) { store(role, v, out, at + i); });
}

void TableDecoder::decode(std::span<const std::byte> records, std::size_t stride, bool big_endian,
                          PointBatch& out, std::size_t at) const {
    for (std::size_t r = 0; r < kRoles; ++r)
        if (column_of_[r] != kNone)
            store_strided(
                r, {records.data() + columns_[column_of_[r]].at, stride, records.size() / stride, big_endian},
                out, at);
}

void TableDecoder::decode_column(std::size_t column, std::span<const std::byte> values,
                                 PointBatch& out) const {
    const std::size_t bytes = bytes_of(columns_[column].type);
    for (std::size_t r = 0; r < kRoles; ++r)
        if (column_of_[r] == column)
            store_strided(r, {values.data(), bytes, values.size() / bytes, false}, out, 0);
}

void TableDecoder::decode_row(std::span<const double> row, PointBatch& out, std::size_t at) const {
    for (std::size_t r = 0; r < kRoles; ++r)
        if (column_of_[r] != kNone) store(static_cast<Role>(r), row[columns_[column_of_[r]].at], out, at);
}

std::optional<std::string> TableDecoder::misfit(std::span<const double> row) const {
    for (const Column& column : columns_) {
        if (is_float(column.type)) continue;
        const double v = row[column.at];
        double low = 0, high = 0;
        with_type(column.type, [&]<class T>(T) {
            low = static_cast<double>(std::numeric_limits<T>::lowest());
            high = static_cast<double>(std::numeric_limits<T>::max());
        });
        if (v >= low && v <= high && v == std::floor(v)) continue;
        return "\"" + column.name + "\" is " + format_number(v) + "; expected a whole number from " +
               format_number(low) + " to " + format_number(high);
    }
    return std::nullopt;
}

std::vector<double> TableDecoder::values_of(Role role, std::span<const std::byte> records, std::size_t stride,
                                            bool big_endian) const {
    const Column& column = columns_[column_of_[static_cast<std::size_t>(role)]];
    std::vector<double> values(records.size() / stride);
    for_each_value(column.type, {records.data() + column.at, stride, values.size(), big_endian},
                   [&](std::size_t i, double v) { values[i] = v; });
    return values;
}

std::string TableDecoder::problem_of(const PointBatch& out, std::size_t i) const {
    const double position[3]{out.x[i], out.y[i], out.z[i]};
    for (std::size_t a = 0; a < 3; ++a)
        if (!(std::fabs(position[a]) <= furthest_))
            return std::string(1, static_cast<char>('x' + a)) + " = " + format_number(position[a]) +
                   (std::isfinite(position[a]) ? " is not a coordinate on Earth" : " is not finite");
    if (has(Role::gps_time) && !std::isfinite(out.gps_time[i]))
        return "the time is " + format_number(out.gps_time[i]) + "; expected a finite number of seconds";
    if (has_label() && out.label[i] == kBadLabel) return "the label" + bad_label(out, i);
    if (has_sensor() && !(length(out.sensor[i]) <= 2 * furthest_)) return far_sensor(out.sensor[i]);
    return {};
}

void TableDecoder::finish(std::uint64_t first_record, PointBatch& out, std::string_view place) const {
    if (labels_) labels_->fill(first_record, out.label, out.instance);
    std::vector<std::uint8_t> bad(out.size());
    bool any = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const bool on_earth = std::fabs(out.x[i]) <= furthest_ && std::fabs(out.y[i]) <= furthest_ &&
                              std::fabs(out.z[i]) <= furthest_;
        const bool no_position = std::isnan(out.x[i]) || std::isnan(out.y[i]) || std::isnan(out.z[i]);
        const bool plain = !has(Role::gps_time) && !has_label() && !has_sensor();
        if (on_earth && plain) continue;
        if (no_position && convention_.nan_is_no_return) {
            ++out.no_return;
        } else {
            const std::string problem = problem_of(out, i);
            if (problem.empty()) continue;
            if (!salvage_)
                throw InputError((place.empty() ? file_name_ : std::string(place)) + ": point " +
                                 std::to_string(first_record + i) + ": " + problem +
                                 " (--salvage leaves such points out and counts them)");
            ++out.damaged;
        }
        bad[i] = 1;
        any = true;
    }
    if (any) out.remove(bad);
}

}  // namespace citysplat::io
