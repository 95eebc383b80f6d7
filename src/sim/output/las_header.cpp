#include "sim/output/las_header.hpp"

#include "io/las/las_crs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace citysplat::sim {

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
    Block header(kVlrHeaderBytes);
    header.text(2, user, 16);
    header.set(18, record);
    header.set(20, static_cast<std::uint16_t>(payload.size()));
    header.text(22, description, 32);
    return header.data() + payload;
}

std::size_t bytes_of(FieldType type) {
    switch (type) {
        case FieldType::u8:
            return 1;
        case FieldType::u16:
            return 2;
        case FieldType::f64:
            return 8;
        default:
            return 4;
    }
}

std::uint8_t extra_type(FieldType type) {
    switch (type) {
        case FieldType::u8:
            return 1;
        case FieldType::u16:
            return 3;
        case FieldType::u32:
            return 5;
        case FieldType::f32:
            return 9;
        default:
            return 10;
    }
}

std::string extra_bytes_vlr(std::span<const Field> fields) {
    std::string payload;
    for (const Field& f : fields) {
        Block descriptor(kExtraDescriptorBytes);
        descriptor.set(2, extra_type(f.type));
        descriptor.text(4, f.name, 32);
        descriptor.text(160, f.meaning, 32);
        payload += descriptor.data();
    }
    return vlr("LASF_Spec", 4, "Extra bytes", payload);
}

}  // namespace

std::string las_header(const LasLayout& layout, const CloudSummary& summary) {
    std::string vlrs = extra_bytes_vlr(layout.extra);
    std::uint32_t vlr_count = 1;
    std::uint16_t encoding = kWktEncoding;
    const auto record = layout.crs.empty() || layout.crs.size() >= 65000
                            ? std::nullopt
                            : io::las_crs_record(std::string(layout.crs));
    if (record) {
        vlrs += vlr("LASF_Projection", record->id, "coordinate system", record->payload);
        ++vlr_count;
        if (!record->is_wkt) encoding = 0;
    }
    std::size_t record_bytes = kLasPointBytes;
    for (const Field& f : layout.extra) record_bytes += bytes_of(f.type);
    Block h(kHeaderBytes);
    h.text(0, "LASF", 4);
    h.set(6, encoding);
    h.set<std::uint8_t>(24, 1);
    h.set<std::uint8_t>(25, 4);
    h.text(26, layout.system, 32);
    h.text(58, "citysplat", 32);
    h.set<std::uint16_t>(90, 1);
    h.set<std::uint16_t>(92, 2000);  // no clock in results
    h.set(94, static_cast<std::uint16_t>(kHeaderBytes));
    h.set(96, static_cast<std::uint32_t>(kHeaderBytes + vlrs.size()));
    h.set(100, vlr_count);
    h.set<std::uint8_t>(104, 6);
    h.set(105, static_cast<std::uint16_t>(record_bytes));
    h.set(131, Vec3d{kLasScale_m, kLasScale_m, kLasScale_m});
    h.set(155, layout.offset_m);
    h.set(179, summary.max.x), h.set(187, summary.min.x);
    h.set(195, summary.max.y), h.set(203, summary.min.y);
    h.set(211, summary.max.z), h.set(219, summary.min.z);
    h.set(247, summary.points);
    h.set(255, summary.points);  // all are first returns
    return h.data() + vlrs;
}

Vec3d put_las_point(std::byte*& at, const LasPoint& p) {
    const auto stored = [](double v, double offset) {
        return static_cast<std::int32_t>(
            std::clamp(std::floor((v - offset) / kLasScale_m + 0.5), -2147483647.0, 2147483647.0));
    };
    const std::int32_t x = stored(p.position.x, p.offset_m.x), y = stored(p.position.y, p.offset_m.y),
                       z = stored(p.position.z, p.offset_m.z);
    put(at, x), put(at, y), put(at, z);
    put(at, p.intensity);
    put<std::uint8_t>(at, 0x11);  // return 1 of 1
    put<std::uint8_t>(at, 0);
    put(at, static_cast<std::uint8_t>(p.label < 256 ? p.label : 0));
    put<std::uint8_t>(at, 0);
    put<std::int16_t>(at, 0);
    put(at, p.source);
    put(at, p.gps_time);
    return {x * kLasScale_m + p.offset_m.x, y * kLasScale_m + p.offset_m.y, z * kLasScale_m + p.offset_m.z};
}

}  // namespace citysplat::sim
