#include "io/write/cloud_header.hpp"

#include "core/error.hpp"
#include "io/bytes_le.hpp"
#include "io/las/las_crs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace citysplat::io {

namespace {

constexpr std::size_t kHeaderBytes = 375, kVlrHeaderBytes = 54, kExtraDescriptorBytes = 192;
constexpr std::uint16_t kWktEncoding = 1u << 4;

/// Bytes of a header, placed by offset as the specification lists them.
class Block {
  public:
    explicit Block(std::size_t bytes) : data_(bytes, '\0') {}
    template <class T>
    void set(std::size_t offset, T value) {
        std::memcpy(data_.data() + offset, &value, sizeof value);
    }
    void text(std::size_t offset, std::string_view s, std::size_t room) {
        std::memcpy(data_.data() + offset, s.data(), std::min(s.size(), room));
    }
    const std::string& data() const { return data_; }

  private:
    std::string data_;
};

std::string vlr(std::string_view user, std::uint16_t record, std::string_view description,
                const std::string& payload) {
    if (payload.size() > 65535)
        throw UsageError("the " + std::string(description) +
                         " of the cloud is longer than a LAS record can hold");
    Block header(kVlrHeaderBytes);
    header.text(2, user, 16);
    header.set(18, record);
    header.set(20, static_cast<std::uint16_t>(payload.size()));
    header.text(22, description, 31);
    return header.data() + payload;
}

std::string extra_bytes_vlr(std::span<const Field> fields) {
    std::string payload;
    for (const Field& f : fields) {
        Block descriptor(kExtraDescriptorBytes);
        descriptor.set(2, facts_of(f.type).las);
        descriptor.text(4, f.name, 32);
        if (f.scale != 1.0 || f.offset != 0.0) {
            descriptor.set<std::uint8_t>(3, 8 | 16);  // scale and offset are set
            descriptor.set(112, f.scale);
            descriptor.set(136, f.offset);
        }
        descriptor.text(160, f.meaning, 32);
        payload += descriptor.data();
    }
    return vlr("LASF_Spec", 4, "extra bytes", payload);
}

/// A number of points that may still change, in the same room.
std::string count_text(std::uint64_t n) {
    char text[24];
    std::snprintf(text, sizeof text, "%012llu", static_cast<unsigned long long>(n));
    return text;
}

}  // namespace

void LasGrid::refuse(Vec3d p, std::size_t axis, std::string_view of) const {
    const double values[3]{p.x, p.y, p.z}, offsets[3]{offset_m.x, offset_m.y, offset_m.z};
    throw InputError(std::string(of) + static_cast<char>('x' + axis) + " = " + std::to_string(values[axis]) +
                     " does not fit 32 bits at a resolution of " + std::to_string(scale_m) +
                     " m from offset " + std::to_string(offsets[axis]));
}

std::string las_header(const LasLayout& layout, const CloudSummary& summary) {
    std::string vlrs;
    std::uint32_t vlr_count = 0;
    std::uint16_t encoding = kWktEncoding;
    std::size_t record_bytes = kLasPointBytes;
    if (!layout.extra.empty()) {
        vlrs += extra_bytes_vlr(layout.extra);
        ++vlr_count;
        for (const Field& f : layout.extra) record_bytes += facts_of(f.type).bytes;
    }
    if (const auto record = layout.crs.empty() ? std::nullopt : las_crs_record(layout.crs)) {
        vlrs += vlr("LASF_Projection", record->id, "coordinate system", record->payload);
        ++vlr_count;
        if (!record->is_wkt) encoding = 0;
    }
    Block h(kHeaderBytes);
    h.text(0, "LASF", 4);
    h.set(6, encoding);
    h.set<std::uint8_t>(24, 1);
    h.set<std::uint8_t>(25, 4);
    h.text(26, layout.system, 32);
    h.text(58, layout.software, 31);
    h.set<std::uint16_t>(90, 1);
    h.set<std::uint16_t>(92, 2000);  // no clock in results
    h.set(94, static_cast<std::uint16_t>(kHeaderBytes));
    h.set(96, static_cast<std::uint32_t>(kHeaderBytes + vlrs.size()));
    h.set(100, vlr_count);
    h.set<std::uint8_t>(104, 6);
    h.set(105, static_cast<std::uint16_t>(record_bytes));
    for (std::size_t a = 0; a < 3; ++a) h.set(131 + 8 * a, layout.grid.scale_m);
    h.set(155, layout.grid.offset_m);
    h.set(179, summary.box.max.x), h.set(187, summary.box.min.x);
    h.set(195, summary.box.max.y), h.set(203, summary.box.min.y);
    h.set(211, summary.box.max.z), h.set(219, summary.box.min.z);
    h.set(247, summary.points);
    h.set(255, summary.points);  // all are first returns
    return h.data() + vlrs;
}

std::string ply_header(std::span<const Field> fields, std::uint64_t points,
                       std::span<const std::string> comments) {
    std::string out = "ply\nformat binary_little_endian 1.0\n";
    for (const std::string& comment : comments) out += "comment " + comment + "\n";
    out += "element vertex " + count_text(points) + "\n";
    for (const Field& f : fields)
        out += "property " + std::string(facts_of(f.type).ply) + " " + f.name + "\n";
    return out + "end_header\n";
}

std::string pcd_header(std::span<const Field> fields, std::uint64_t points) {
    std::string names = "FIELDS", sizes = "SIZE", types = "TYPE", counts = "COUNT";
    for (const Field& f : fields) {
        names += std::string(" ") + f.name;
        sizes += " " + std::to_string(facts_of(f.type).bytes);
        types += std::string(" ") + facts_of(f.type).pcd;
        counts += " 1";
    }
    return "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n" + names + "\n" + sizes + "\n" + types +
           "\n" + counts + "\nWIDTH " + count_text(points) + "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS " +
           count_text(points) + "\nDATA binary\n";
}

}  // namespace citysplat::io
