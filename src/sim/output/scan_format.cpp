#include "sim/output/scan_format.hpp"

#include "sim/output/scan_format_of.hpp"

#include <charconv>
#include <span>

namespace citysplat::sim {

namespace {

using io::CloudSummary;
using io::Field;
using io::put;

/// What LAS has no places for.
std::vector<Field> fields_of(const CloudLayout& layout) {
    constexpr auto kAlways = kReturnFields.fields();
    constexpr auto kRecorded = kRecordedFields.fields();
    std::vector<Field> fields(kAlways.begin(), kAlways.end());
    if (layout.recorded) fields.insert(fields.end(), kRecorded.begin(), kRecorded.end());
    return fields;
}

constexpr std::size_t kMostFieldBytes = kReturnFields.kBytes + kRecordedFields.kBytes;

void put_fields(std::byte*& at, const ReturnPoint& p, const CloudLayout& layout) {
    kReturnFields.put(at, p);
    if (layout.recorded) kRecordedFields.put(at, p);
}

struct LasRecord {
    static constexpr Needs kNeeds = Needs::all;
    static constexpr std::string_view kExtension = ".las";
    static constexpr std::size_t kMostBytes = io::kLasPointBytes + kMostFieldBytes;
    static std::string header(const CloudLayout& layout, const CloudSummary& summary) {
        const std::vector<Field> fields = fields_of(layout);
        return io::las_header({fields, {layout.offset_m}, layout.crs, "simulation"}, summary);
    }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout& layout) {
        const io::LasGrid grid{layout.offset_m};
        io::LasPoint point;
        point.place = grid.steps(p.position);
        point.intensity = p.r.intensity;
        point.label = p.r.label;
        point.source = p.r.beam;
        point.gps_time = p.gps_time();
        point.return_number = p.return_number;
        point.number_of_returns = p.number_of_returns;
        io::put_las_point(at, point);
        put_fields(at, p, layout);
        return grid.metres(point.place);
    }
};

/// What PLY and PCD share.
struct TableRecord {
    static constexpr Needs kNeeds = Needs::all;
    static constexpr std::size_t kMostBytes = kPlaceFields.kBytes + kMostFieldBytes + kNumberFields.kBytes;
    static std::vector<Field> fields(const CloudLayout& layout) {
        constexpr auto kPlace = kPlaceFields.fields();
        std::vector<Field> all(kPlace.begin(), kPlace.end());
        const std::vector<Field> rest = fields_of(layout);
        all.insert(all.end(), rest.begin(), rest.end());
        constexpr auto kNumbers = kNumberFields.fields();
        if (layout.several) all.insert(all.end(), kNumbers.begin(), kNumbers.end());
        return all;
    }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout& layout) {
        kPlaceFields.put(at, p);
        put_fields(at, p, layout);
        if (layout.several) kNumberFields.put(at, p);
        return p.position;
    }
};

constexpr std::string_view kFrames[]{"world", "sensor", "firing"};

struct PlyRecord : TableRecord {
    static constexpr std::string_view kExtension = ".ply";
    static std::string header(const CloudLayout& layout, const CloudSummary& summary) {
        const std::string comment =
            "citysplat scan, " + std::string(kFrames[static_cast<std::size_t>(layout.frame)]) + " frame";
        return io::ply_header(fields(layout), summary.points, std::span(&comment, 1));
    }
};

struct PcdRecord : TableRecord {
    static constexpr std::string_view kExtension = ".pcd";
    static std::string header(const CloudLayout& layout, const CloudSummary& summary) {
        return io::pcd_header(fields(layout), summary.points);
    }
};

struct KittiRecord {
    static constexpr Needs kNeeds = Needs::positions;
    static constexpr std::string_view kExtension = ".bin";
    static constexpr std::size_t kMostBytes = 16;
    static std::string header(const CloudLayout&, const CloudSummary&) { return {}; }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout&) {
        io::put(at, vec_cast<float>(p.position));
        io::put(at, static_cast<float>(p.r.intensity) * (1.0f / 65535.0f));
        return p.position;
    }
};

struct KittiLabelRecord {
    static constexpr Needs kNeeds = Needs::attributes;
    static constexpr std::string_view kExtension = ".label";
    static constexpr std::size_t kMostBytes = 4;
    static std::string header(const CloudLayout&, const CloudSummary&) { return {}; }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout&) {
        // SemanticKITTI: the class in the low half, the instance in the high one.
        io::put(at, static_cast<std::uint32_t>(p.r.label) | static_cast<std::uint32_t>(p.r.instance) << 16);
        return p.position;
    }
};

struct XyzRecord {
    static constexpr Needs kNeeds = Needs::positions;
    static constexpr std::string_view kExtension = ".xyz";
    static constexpr std::size_t kMostBytes = 138;
    static std::string header(const CloudLayout& layout, const CloudSummary&) {
        std::string columns = "x y z intensity label instance";
        if (layout.recorded) columns += " recorded_intensity recorded_range recorded_incidence";
        if (layout.several) columns += " return_number number_of_returns";
        return columns + '\n';
    }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout& layout) {
        char* c = reinterpret_cast<char*>(at);
        char* end = c + kMostBytes;
        for (const double v : {p.position.x, p.position.y, p.position.z}) {
            c = std::to_chars(c, end, v, std::chars_format::fixed, 4).ptr;
            *c++ = ' ';
        }
        c = std::to_chars(c, end, p.r.intensity).ptr;
        const auto column = [&c, end](unsigned value) {
            *c++ = ' ';
            c = std::to_chars(c, end, value).ptr;
        };
        column(p.r.label), column(p.r.instance);
        if (layout.recorded)
            for (const unsigned value : {unsigned{p.r.recorded_intensity}, unsigned{p.r.recorded_range_m},
                                         unsigned{p.r.recorded_incidence}})
                column(value);
        if (layout.several) column(p.return_number), column(p.number_of_returns);
        *c++ = '\n';
        at = reinterpret_cast<std::byte*>(c);
        return p.position;
    }
};

}  // namespace

std::vector<Field> point_fields(const CloudLayout& layout) { return TableRecord::fields(layout); }

std::unique_ptr<ScanFormat> make_scan_format(std::string_view name) {
    if (name == "las") return std::make_unique<FormatOf<LasRecord>>();
    if (name == "ply") return std::make_unique<FormatOf<PlyRecord>>();
    if (name == "pcd") return std::make_unique<FormatOf<PcdRecord>>();
    if (name == "kitti") return std::make_unique<FormatOf<KittiRecord>>();
    if (name == "kitti labels") return std::make_unique<FormatOf<KittiLabelRecord>>();
    if (name == "xyz") return std::make_unique<FormatOf<XyzRecord>>();
    return nullptr;
}

}  // namespace citysplat::sim
