#include "sim/output/scan_format.hpp"

#include "sim/output/scan_fields.hpp"
#include "sim/scan/return_lanes.hpp"

#include <array>
#include <charconv>
#include <span>

namespace citysplat::sim {

namespace {

using io::CloudSummary;
using io::Field;
using io::put;

/// Brings points of the world into the frame of a file.
class Frame {
  public:
    Frame(const CloudLayout& layout, const Scan& scan)
        : sensor_frame_(layout.sensor_frame),
          translation_(scan.world_from_sensor.translation),
          sensor_from_world_(conjugate(scan.world_from_sensor.rotation)) {}

    Vec3d from_world(Vec3d p) const {
        return sensor_frame_ ? rotate(sensor_from_world_, p - translation_) : p;
    }

  private:
    bool sensor_frame_;
    Vec3d translation_;
    Quaternion sensor_from_world_;
};

/// What the records of a format need to know about the points.
enum class Needs {
    attributes,  ///< not where they are
    positions,   ///< that, but nothing else that must be computed
    all          ///< angles too, and their number and bounds for a header
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
    std::size_t most_record_bytes() const override { return Record::kMostBytes; }
    void append(const ScanPiece& piece, const CloudLayout& layout, std::byte*& at,
                CloudSummary& summary) const override {
        const Scan& scan = piece.scan;
        const Frame frame(layout, scan);
        std::array<std::uint32_t, kBlock> rays;
        std::array<float, kBlock> incidence_deg{};
        std::byte* out = at;  // a pointer that nothing else can change stays in a register
        for (std::size_t next = piece.begin; next < piece.end;) {
            const std::size_t count = choose(piece, layout.keep_all, next, rays);
            if constexpr (Record::kNeeds == Needs::all) {
                for (std::size_t i = 0; i < count; ++i) incidence_deg[i] = scan.returns[rays[i]].cosine;
                lanes_.incidences({incidence_deg.data(), count});
            } else {
                summary.points += count;
            }
            for (std::size_t i = 0; i < count; ++i) {
                const Return& r = scan.returns[rays[i]];
                ReturnPoint point{scan, rays[i], r, {0, 0, 0}, 0};
                if (layout.several) count_returns(layout.keep_all, point);
                if constexpr (Record::kNeeds != Needs::attributes)
                    point.position = frame.from_world(r.position);
                if (r.status != RayStatus::none) point.incidence_deg = incidence_deg[i];
                const Vec3d written = Record::put(out, point, layout);
                if constexpr (Record::kNeeds == Needs::all) summary.add(written);
            }
        }
        at = out;
    }

  private:
    static constexpr std::size_t kBlock = 128;

    /// The next rays that are written, from `next` on.
    static std::size_t choose(const ScanPiece& piece, bool all, std::size_t& next,
                              std::array<std::uint32_t, kBlock>& rays) {
        std::size_t count = 0;
        for (; next < piece.end && count < kBlock; ++next) {
            rays[count] = static_cast<std::uint32_t>(next);
            count += is_written(piece.scan, next, all);
        }
        return count;
    }
    /// A pulse without any return is written once.
    static bool is_written(const Scan& scan, std::size_t at, bool all) {
        const RayStatus status = scan.returns[at].status;
        return status == RayStatus::hit || (all && (at < scan.pulses() || status != RayStatus::none));
    }
    /// `point.ray` is the place of a return among all of the scan; becomes that of its pulse.
    static void count_returns(bool all, ReturnPoint& point) {
        const Scan& scan = point.scan;
        const std::size_t pulses = scan.pulses(), at = point.ray,
                          other = at < pulses ? at + pulses : at - pulses;
        point.ray = static_cast<std::uint32_t>(at % pulses);
        if (!is_written(scan, other, all)) return;
        point.number_of_returns = 2;
        point.return_number = scan.returns[other].range_m < point.r.range_m ? 2 : 1;
    }

    const ReturnLanes lanes_ = return_lanes();
};

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

struct PlyRecord : TableRecord {
    static constexpr std::string_view kExtension = ".ply";
    static std::string header(const CloudLayout& layout, const CloudSummary& summary) {
        const std::string comment =
            std::string("citysplat scan, ") + (layout.sensor_frame ? "sensor" : "world") + " frame";
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
    static constexpr std::size_t kMostBytes = 132;
    static std::string header(const CloudLayout& layout, const CloudSummary&) {
        std::string columns = "x y z intensity label";
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
        column(p.r.label);
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
