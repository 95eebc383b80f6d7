#include "io/las/las_records.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/lattice.hpp"
#include "core/text.hpp"
#include "io/bytes_le.hpp"
#include "io/points/point_values.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace {

double load_number(const LasExtraField& field, const std::byte* record) {
    const std::byte* p = record + field.at;
    switch (field.type) {
        case 1:
            return load_le<std::uint8_t>(p);
        case 2:
            return load_le<std::int8_t>(p);
        case 3:
            return load_le<std::uint16_t>(p);
        case 4:
            return load_le<std::int16_t>(p);
        case 5:
            return load_le<std::uint32_t>(p);
        case 6:
            return load_le<std::int32_t>(p);
        case 7:
            return static_cast<double>(load_le<std::uint64_t>(p));
        case 8:
            return static_cast<double>(load_le<std::int64_t>(p));
        case 9:
            return static_cast<double>(load_le<float>(p));
        case 10:
            return load_le<double>(p);
        default:
            return 0;
    }
}

Vec3d scaled(Vec3d v, Vec3d factors) { return {v.x * factors.x, v.y * factors.y, v.z * factors.z}; }

constexpr double kAnywhere = 1e300;
constexpr Box3d kEverywhere{{-kAnywhere, -kAnywhere, -kAnywhere}, {kAnywhere, kAnywhere, kAnywhere}};

/// Headers are rounded, some to whole metres or to float32: so much outside the bounds is inside.
constexpr double kBoundsSlack_m = 1;

}  // namespace

LasRecordDecoder::LasRecordDecoder(const LasHeader& h, std::string file_name, const ReadOptions& options,
                                   Vec3d metres_per_unit)
    : file_name_(std::move(file_name)),
      salvage_(options.salvage),
      extended_(h.point_format >= 6),
      stride_(h.record_bytes),
      scale_(scaled(h.scale, metres_per_unit)),
      offset_(scaled(h.offset, metres_per_unit)),
      to_metres_(metres_per_unit) {
    if (!options.labels.empty()) labels_ = std::make_shared<const LabelFile>(options.labels, h.points);
    furthest_ = options.units == ReadOptions::Units::as_is ? kAnywhere : kMaxWorld_m;
    constexpr Vec3d kSlack{kBoundsSlack_m, kBoundsSlack_m, kBoundsSlack_m};
    bounds_ = options.ignore_bounds ? kEverywhere
                                    : Box3d{scaled(h.bounds.min, metres_per_unit) - kSlack,
                                            scaled(h.bounds.max, metres_per_unit) + kSlack};
    constexpr std::size_t kGpsAt[kLasFormats]{0, 20, 0, 20, 20, 20, 22, 22, 22, 22, 22};
    gps_at_ = kGpsAt[h.point_format];
    using Names = std::initializer_list<std::string_view>;
    label_ = find_extra(h, Names{"label", "class", "semantic"});
    instance_ = find_extra(h, Names{"instance", "instance_id", "object_id"});
    sensor_[0] = find_extra(h, Names{"sensor_x", "x_origin", "x_lidar_position"});
    sensor_[1] = find_extra(h, Names{"sensor_y", "y_origin", "y_lidar_position"});
    sensor_[2] = find_extra(h, Names{"sensor_z", "z_origin", "z_lidar_position"});
    const auto there = [](const LasExtraField& f) { return f.bytes != 0; };
    const auto axes = std::count_if(std::begin(sensor_), std::end(sensor_), there);
    half_sensor_ = axes == 1 || axes == 2;
    if (half_sensor_) sensor_[0] = {};
}

LasExtraField LasRecordDecoder::find_extra(const LasHeader& h,
                                           std::span<const std::string_view> names) const {
    for (const auto& field : h.extra) {
        const std::string name = lower_case(field.name);
        if (field.type >= 1 && field.type <= 10 && std::find(names.begin(), names.end(), name) != names.end())
            return field;
    }
    return {};
}

void LasRecordDecoder::begin(PointBatch& out, std::size_t n) const {
    out.no_return = out.damaged = 0;
    out.masked = {};
    out.empty_rays.clear();
    out.beam.clear();
    out.first_bad_label.reset();
    grow(out, n);
}

void LasRecordDecoder::grow(PointBatch& out, std::size_t n) const {
    for (auto* column : {&out.x, &out.y, &out.z}) column->resize(n);
    out.gps_time.resize(has_gps_time() ? n : 0);
    out.intensity.resize(n);
    out.label.resize(n);
    out.instance.resize(has_instance() ? n : 0);
    out.scan_angle_deg.resize(n);
    out.sensor.resize(has_sensor() ? n : 0);
    out.withheld.resize(n);
}

template <bool Extended>
void LasRecordDecoder::decode_standard(const std::byte* raw, std::size_t count, PointBatch& out,
                                       std::size_t at) const {
    double *x = out.x.data() + at, *y = out.y.data() + at, *z = out.z.data() + at;
    std::uint16_t *intensity = out.intensity.data() + at, *label = out.label.data() + at;
    float* angle = out.scan_angle_deg.data() + at;
    std::uint8_t* withheld = out.withheld.data() + at;
    for (std::size_t i = 0; i < count; ++i, raw += stride_) {
        x[i] = load_le<std::int32_t>(raw) * scale_.x + offset_.x;
        y[i] = load_le<std::int32_t>(raw + 4) * scale_.y + offset_.y;
        z[i] = load_le<std::int32_t>(raw + 8) * scale_.z + offset_.z;
        intensity[i] = load_le<std::uint16_t>(raw + 12);
        if constexpr (Extended) {
            withheld[i] = (load_le<std::uint8_t>(raw + 15) >> 2) & 1;
            label[i] = load_le<std::uint8_t>(raw + 16);
            angle[i] = static_cast<float>(load_le<std::int16_t>(raw + 18)) * 0.006f;
        } else {
            const std::uint8_t packed = load_le<std::uint8_t>(raw + 15);
            withheld[i] = packed >> 7;
            label[i] = packed & 31;
            angle[i] = static_cast<float>(load_le<std::int8_t>(raw + 16));
        }
    }
}

void LasRecordDecoder::refuse(std::uint64_t record, const std::string& problem) const {
    throw InputError(file_name_ + ": point " + std::to_string(record) + ": " + problem +
                     "; the file is damaged (--salvage leaves such points out and counts them)");
}

void LasRecordDecoder::decode_extra(const std::byte* raw, std::size_t count, PointBatch& out,
                                    std::size_t at) const {
    const auto value = [](const LasExtraField& f, const std::byte* record) {
        return load_number(f, record) * f.scale + f.offset;
    };
    for (std::size_t i = 0; i < count; ++i, raw += stride_) {
        if (label_.bytes) store_label(value(label_, raw), out, at + i);
        if (instance_.bytes) store_instance(value(instance_, raw), out, at + i);
        if (has_sensor())
            out.sensor[at + i] =
                scaled({value(sensor_[0], raw), value(sensor_[1], raw), value(sensor_[2], raw)}, to_metres_);
    }
}

void LasRecordDecoder::decode(std::span<const std::byte> records, PointBatch& out, std::size_t at) const {
    const std::size_t count = records.size() / stride_;
    if (extended_)
        decode_standard<true>(records.data(), count, out, at);
    else
        decode_standard<false>(records.data(), count, out, at);
    if (has_gps_time())
        for (std::size_t i = 0; i < count; ++i)
            out.gps_time[at + i] = load_le<double>(records.data() + i * stride_ + gps_at_);
    if (label_.bytes || instance_.bytes || has_sensor()) decode_extra(records.data(), count, out, at);
}

std::string LasRecordDecoder::problem_of(const PointBatch& out, std::size_t i) const {
    const double position[3]{out.x[i], out.y[i], out.z[i]};
    const double low[3]{bounds_.min.x, bounds_.min.y, bounds_.min.z};
    const double high[3]{bounds_.max.x, bounds_.max.y, bounds_.max.z};
    for (std::size_t a = 0; a < 3; ++a) {
        const std::string value =
            std::string(1, static_cast<char>('x' + a)) + " = " + format_number(position[a]);
        if (!(std::fabs(position[a]) <= furthest_)) return value + " is not a coordinate on Earth";
        if (position[a] < low[a] || position[a] > high[a])
            return value + " lies outside the bounds of the header, " +
                   format_number(low[a] + kBoundsSlack_m) + " to " + format_number(high[a] - kBoundsSlack_m) +
                   " (--ignore-bounds if only those are wrong)";
    }
    if (has_gps_time() && !std::isfinite(out.gps_time[i]))
        return "the GPS time is " + format_number(out.gps_time[i]) + "; expected a finite number of seconds";
    if (label_.bytes && out.label[i] == kBadLabel)
        return "the label (extra bytes \"" + label_.name + "\")" + bad_label(out, i);
    if (has_sensor() && !(length(out.sensor[i]) <= 2 * furthest_)) return far_sensor(out.sensor[i]);
    return {};
}

void LasRecordDecoder::look_at(std::span<const std::byte> plain_records, PointFileInfo& info) {
    if (half_sensor_) info.notes.push_back(kHalfSensor);
    const std::size_t count = plain_records.size() / stride_;
    std::size_t outside = 0, odd_returns = 0;
    std::string first_odd;
    for (std::size_t i = 0; i < count; ++i) {
        const std::byte* raw = plain_records.data() + i * stride_;
        const Vec3d p{load_le<std::int32_t>(raw) * scale_.x + offset_.x,
                      load_le<std::int32_t>(raw + 4) * scale_.y + offset_.y,
                      load_le<std::int32_t>(raw + 8) * scale_.z + offset_.z};
        outside += !(p.x >= bounds_.min.x && p.x <= bounds_.max.x && p.y >= bounds_.min.y &&
                     p.y <= bounds_.max.y && p.z >= bounds_.min.z && p.z <= bounds_.max.z);
        const unsigned returns = load_le<std::uint8_t>(raw + 14), bits = extended_ ? 4 : 3;
        const unsigned number = returns & ((1u << bits) - 1), of = (returns >> bits) & ((1u << bits) - 1);
        if (number <= std::max(of, 1u)) continue;  // "1 of 0" comes from writers that know no returns
        if (odd_returns++ == 0) first_odd = std::to_string(number) + " of " + std::to_string(of);
    }
    if (odd_returns)
        info.notes.push_back(std::to_string(odd_returns) + " of " + std::to_string(count) +
                             " points looked at have impossible return numbers, e.g. " + first_odd +
                             "; they are not used");
    if (2 * outside <= count) return;
    bounds_ = kEverywhere;
    info.bounds_known = false;
    info.notes.push_back("the bounds in the header are wrong (" + std::to_string(outside) + " of " +
                         std::to_string(count) + " points looked at lie outside) and are not used");
}

void LasRecordDecoder::finish(std::uint64_t first_record, PointBatch& out) const {
    if (labels_) labels_->fill(first_record, out.label, out.instance);
    const std::size_t n = out.size();
    const auto outside = [](double v, double low, double high) { return !(v >= low && v <= high); };
    unsigned any = 0;
    for (std::size_t i = 0; i < n; ++i)
        any |= static_cast<unsigned>(outside(out.x[i], bounds_.min.x, bounds_.max.x)) |
               static_cast<unsigned>(outside(out.y[i], bounds_.min.y, bounds_.max.y)) |
               static_cast<unsigned>(outside(out.z[i], bounds_.min.z, bounds_.max.z));
    if (has_gps_time())
        for (const double t : out.gps_time) any |= static_cast<unsigned>(!std::isfinite(t));
    if (label_.bytes)
        for (const std::uint16_t label : out.label) any |= static_cast<unsigned>(label == kBadLabel);
    const auto off_earth = [furthest = furthest_](Vec3d low, Vec3d high) {
        double far = 0;
        for (const double v : {low.x, low.y, low.z, high.x, high.y, high.z})
            far = std::max(far, std::fabs(v));
        return !(far <= furthest);
    };
    if (!any && !has_sensor() && !off_earth(bounds_.min, bounds_.max)) return;

    std::vector<std::uint8_t> bad(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::string problem = problem_of(out, i);
        if (problem.empty()) continue;
        if (!salvage_) refuse(first_record + i, problem);
        bad[i] = 1;
        ++out.damaged;
    }
    if (out.damaged) out.remove(bad);
}

}  // namespace citysplat::io
