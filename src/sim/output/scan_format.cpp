#include "sim/output/scan_format.hpp"

#include "core/math_hd.hpp"
#include "sim/output/scan_record.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace citysplat::sim {

void CloudSummary::add(Vec3d p) {
    if (points++ == 0) min = max = p;
    min = {std::min(min.x, p.x), std::min(min.y, p.y), std::min(min.z, p.z)};
    max = {std::max(max.x, p.x), std::max(max.y, p.y), std::max(max.z, p.z)};
}

Vec3d position_in(const CloudLayout& layout, const Scan& scan, const Return& r) {
    if (!layout.sensor_frame) return r.position;
    const Pose& pose = scan.world_from_sensor;
    return rotate(conjugate(pose.rotation), r.position - pose.translation);
}

void put_return(std::byte*& at, std::uint32_t ray, const Return& r) {
    put(at, r.range_m);
    put(at, r.time_s);
    put(at, r.normal);
    put(at, r.status == RayStatus::none
                ? 0.0f
                : static_cast<float>(exact::acos(static_cast<double>(r.cosine)) * (180 / exact::kPi)));
    put(at, ray);
    put(at, static_cast<std::uint32_t>(r.splat_id >> 32));
    put(at, static_cast<std::uint32_t>(r.splat_id));
    put(at, r.beam);
    put(at, r.label);
    put(at, r.hits);
    put(at, r.status);
}

namespace {

/// Makes room for the records of a scan and lets `record` fill one after the other.
template <class F>
void append_records(const Scan& scan, const CloudLayout& layout, std::size_t record_bytes,
                    std::vector<std::byte>& out, CloudSummary& summary, F record) {
    const std::size_t before = out.size();
    out.resize(before + scan.returns.size() * record_bytes);
    std::byte* at = out.data() + before;
    for_each_point(scan, layout, [&](std::uint32_t ray, const Return& r, Vec3d p) {
        record(at, ray, r, p);
        summary.add(p);
    });
    out.resize(static_cast<std::size_t>(at - out.data()));
}

/// x y z as double, time, intensity and the shared record.
constexpr std::size_t kCloudRecordBytes = 3 * 8 + 8 + 2 + kReturnBytes;

void append_cloud(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                  CloudSummary& summary) {
    append_records(scan, layout, kCloudRecordBytes, out, summary,
                   [&](std::byte*& at, std::uint32_t ray, const Return& r, Vec3d p) {
                       put(at, p);
                       put(at, scan.time_s + static_cast<double>(r.time_s));
                       put(at, r.intensity);
                       put_return(at, ray, r);
                   });
}

const char* ply_type(FieldType type) {
    switch (type) {
        case FieldType::u8:
            return "uchar";
        case FieldType::u16:
            return "ushort";
        case FieldType::u32:
            return "uint";
        case FieldType::f32:
            return "float";
        default:
            return "double";
    }
}

std::string fixed_width(std::uint64_t n) {
    char text[24];
    std::snprintf(text, sizeof text, "%012llu", static_cast<unsigned long long>(n));
    return text;
}

class PlyFormat final : public ScanFormat {
  public:
    std::string_view extension() const override { return ".ply"; }
    std::string header(const CloudLayout& layout, const CloudSummary& summary) const override {
        std::string out = "ply\nformat binary_little_endian 1.0\ncomment citysplat scan, " +
                          std::string(layout.sensor_frame ? "sensor" : "world") + " frame\nelement vertex " +
                          fixed_width(summary.points) +
                          "\nproperty double x\nproperty double y\nproperty double z\n"
                          "property double gps_time\nproperty ushort intensity\n";
        for (const Field& f : kReturnFields)
            out += "property " + std::string(ply_type(f.type)) + " " + f.name + "\n";
        return out + "end_header\n";
    }
    void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                CloudSummary& summary) const override {
        append_cloud(scan, layout, out, summary);
    }
};

class PcdFormat final : public ScanFormat {
  public:
    std::string_view extension() const override { return ".pcd"; }
    std::string header(const CloudLayout&, const CloudSummary& summary) const override {
        std::string fields = "FIELDS x y z gps_time intensity", sizes = "SIZE 8 8 8 8 2",
                    types = "TYPE F F F F U", counts = "COUNT 1 1 1 1 1";
        for (const Field& f : kReturnFields) {
            fields += std::string(" ") + f.name;
            sizes += f.type == FieldType::u8 ? " 1" : f.type == FieldType::u16 ? " 2" : " 4";
            types += f.type == FieldType::f32 ? " F" : " U";
            counts += " 1";
        }
        return "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n" + fields + "\n" + sizes + "\n" +
               types + "\n" + counts + "\nWIDTH " + fixed_width(summary.points) +
               "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS " + fixed_width(summary.points) +
               "\nDATA binary\n";
    }
    void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                CloudSummary& summary) const override {
        append_cloud(scan, layout, out, summary);
    }
};

class KittiFormat final : public ScanFormat {
  public:
    std::string_view extension() const override { return ".bin"; }
    std::string header(const CloudLayout&, const CloudSummary&) const override { return {}; }
    void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                CloudSummary& summary) const override {
        append_records(scan, layout, 16, out, summary,
                       [](std::byte*& at, std::uint32_t, const Return& r, Vec3d p) {
                           put(at, vec_cast<float>(p));
                           put(at, static_cast<float>(r.intensity) * (1.0f / 65535.0f));
                       });
    }
};

class KittiLabelFormat final : public ScanFormat {
  public:
    std::string_view extension() const override { return ".label"; }
    std::string header(const CloudLayout&, const CloudSummary&) const override { return {}; }
    void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                CloudSummary& summary) const override {
        append_records(scan, layout, 4, out, summary,
                       [](std::byte*& at, std::uint32_t, const Return& r, Vec3d) {
                           put(at, static_cast<std::uint32_t>(r.label));
                       });
    }
};

class XyzFormat final : public ScanFormat {
  public:
    std::string_view extension() const override { return ".xyz"; }
    std::string header(const CloudLayout&, const CloudSummary&) const override {
        return "x y z intensity label\n";
    }
    void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                CloudSummary& summary) const override {
        constexpr std::size_t kLongestLine = 112;
        append_records(scan, layout, kLongestLine, out, summary,
                       [](std::byte*& at, std::uint32_t, const Return& r, Vec3d p) {
                           char* c = reinterpret_cast<char*>(at);
                           char* end = c + kLongestLine;
                           for (const double v : {p.x, p.y, p.z}) {
                               c = std::to_chars(c, end, v, std::chars_format::fixed, 4).ptr;
                               *c++ = ' ';
                           }
                           c = std::to_chars(c, end, r.intensity).ptr;
                           *c++ = ' ';
                           c = std::to_chars(c, end, r.label).ptr;
                           *c++ = '\n';
                           at = reinterpret_cast<std::byte*>(c);
                       });
    }
};

}  // namespace

std::unique_ptr<ScanFormat> make_ply_format() { return std::make_unique<PlyFormat>(); }
std::unique_ptr<ScanFormat> make_pcd_format() { return std::make_unique<PcdFormat>(); }
std::unique_ptr<ScanFormat> make_kitti_format() { return std::make_unique<KittiFormat>(); }
std::unique_ptr<ScanFormat> make_kitti_label_format() { return std::make_unique<KittiLabelFormat>(); }
std::unique_ptr<ScanFormat> make_xyz_format() { return std::make_unique<XyzFormat>(); }

}  // namespace citysplat::sim
