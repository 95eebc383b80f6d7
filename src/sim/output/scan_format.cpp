#include "sim/output/scan_format.hpp"

#include "sim/output/scan_fields.hpp"

#include <charconv>

namespace citysplat::sim {

namespace {

using io::CloudSummary;
using io::Field;
using io::put;

Vec3d position_in(const CloudLayout& layout, const Scan& scan, const Return& r) {
    if (!layout.sensor_frame) return r.position;
    const Pose& pose = scan.world_from_sensor;
    return rotate(conjugate(pose.rotation), r.position - pose.translation);
}

/// What the records of a format need to know about the points.
enum class Needs {
    attributes,  ///< not where they are
    positions,   ///< that, but nothing about all of them together
    summary      ///< there is a header, with their number and bounds
};

/// A format from what its records are: their largest size, and put(), which appends one and returns the
/// position as a reader will see it.
template <class Record>
class FormatOf final : public ScanFormat {
  public:
    std::string_view extension() const override { return Record::kExtension; }
    std::string header(const CloudLayout& layout, const CloudSummary& summary) const override {
        return Record::header(layout, summary);
    }
    void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                CloudSummary& summary) const override {
        const std::size_t before = out.size();
        out.resize(before + scan.returns.size() * Record::kMostBytes);
        std::byte* at = out.data() + before;
        std::uint64_t points = 0;
        for (std::uint32_t ray = 0; ray < scan.returns.size(); ++ray) {
            const Return& r = scan.returns[ray];
            if (!layout.keep_all && r.status != RayStatus::hit) continue;
            Vec3d position{0, 0, 0};
            if constexpr (Record::kNeeds != Needs::attributes) position = position_in(layout, scan, r);
            const Vec3d written = Record::put(at, {scan, ray, r, position}, layout);
            if constexpr (Record::kNeeds == Needs::summary) summary.add(written);
            ++points;
        }
        if constexpr (Record::kNeeds != Needs::summary) summary.points += points;
        out.resize(static_cast<std::size_t>(at - out.data()));
    }
};

struct LasRecord {
    static constexpr Needs kNeeds = Needs::summary;
    static constexpr std::string_view kExtension = ".las";
    static constexpr std::size_t kMostBytes = io::kLasPointBytes + kReturnFields.kBytes;
    static std::string header(const CloudLayout& layout, const CloudSummary& summary) {
        static constexpr auto kFields = kReturnFields.fields();
        return io::las_header({kFields, {layout.offset_m}, layout.crs, "simulation"}, summary);
    }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout& layout) {
        const io::LasGrid grid{layout.offset_m};
        io::LasPoint point;
        point.place = grid.steps(p.position);
        point.intensity = p.r.intensity;
        point.label = p.r.label;
        point.source = p.r.beam;
        point.gps_time = p.gps_time();
        io::put_las_point(at, point);
        kReturnFields.put(at, p);
        return grid.metres(point.place);
    }
};

/// What PLY and PCD share.
struct TableRecord {
    static constexpr Needs kNeeds = Needs::summary;
    static constexpr std::size_t kMostBytes = kPlaceFields.kBytes + kReturnFields.kBytes;
    static std::vector<Field> fields() {
        constexpr auto kPlace = kPlaceFields.fields();
        constexpr auto kRest = kReturnFields.fields();
        std::vector<Field> all(kPlace.begin(), kPlace.end());
        all.insert(all.end(), kRest.begin(), kRest.end());
        return all;
    }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout&) {
        kPlaceFields.put(at, p);
        kReturnFields.put(at, p);
        return p.position;
    }
};

struct PlyRecord : TableRecord {
    static constexpr std::string_view kExtension = ".ply";
    static std::string header(const CloudLayout& layout, const CloudSummary& summary) {
        const std::string comment =
            std::string("citysplat scan, ") + (layout.sensor_frame ? "sensor" : "world") + " frame";
        return io::ply_header(fields(), summary.points, std::span(&comment, 1));
    }
};

struct PcdRecord : TableRecord {
    static constexpr std::string_view kExtension = ".pcd";
    static std::string header(const CloudLayout&, const CloudSummary& summary) {
        return io::pcd_header(fields(), summary.points);
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
        io::put(at, static_cast<std::uint32_t>(p.r.label));
        return p.position;
    }
};

struct XyzRecord {
    static constexpr Needs kNeeds = Needs::positions;
    static constexpr std::string_view kExtension = ".xyz";
    static constexpr std::size_t kMostBytes = 112;
    static std::string header(const CloudLayout&, const CloudSummary&) { return "x y z intensity label\n"; }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout&) {
        char* c = reinterpret_cast<char*>(at);
        char* end = c + kMostBytes;
        for (const double v : {p.position.x, p.position.y, p.position.z}) {
            c = std::to_chars(c, end, v, std::chars_format::fixed, 4).ptr;
            *c++ = ' ';
        }
        c = std::to_chars(c, end, p.r.intensity).ptr;
        *c++ = ' ';
        c = std::to_chars(c, end, p.r.label).ptr;
        *c++ = '\n';
        at = reinterpret_cast<std::byte*>(c);
        return p.position;
    }
};

}  // namespace

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
