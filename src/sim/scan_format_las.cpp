#include "sim/scan_format.hpp"
#include "sim/scan_record.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace citysplat::sim {

namespace {

/// LAS 1.4 R15, point format 6 with extra bytes. The header and its records have a fixed layout, so that one
/// function writes them before and after the points.
constexpr std::size_t kHeaderBytes = 375, kVlrHeaderBytes = 54, kExtraDescriptorBytes = 192;
constexpr std::size_t kPointBytes = 30;
constexpr double kScale_m = 0.0001;
constexpr std::uint16_t kGpsTimeAndWkt = 1u << 4;  ///< global encoding: WKT; time as in the trajectory

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

std::string extra_bytes_vlr() {
    std::string payload;
    for (const Field& f : kReturnFields) {
        Block descriptor(kExtraDescriptorBytes);
        descriptor.set(2, extra_type(f.type));
        descriptor.text(4, f.name, 32);
        descriptor.text(160, f.meaning, 32);
        payload += descriptor.data();
    }
    return vlr("LASF_Spec", 4, "Extra bytes", payload);
}

class LasFormat final : public ScanFormat {
  public:
    std::string_view extension() const override { return ".las"; }

    std::string header(const CloudLayout& layout, const CloudSummary& summary) const override {
        std::string vlrs = extra_bytes_vlr();
        std::uint32_t vlr_count = 1;
        if (!layout.crs.empty() && layout.crs.size() < 65000) {
            vlrs += vlr("LASF_Projection", 2112, "WKT", layout.crs + '\0');
            ++vlr_count;
        }
        Block h(kHeaderBytes);
        h.text(0, "LASF", 4);
        h.set(6, kGpsTimeAndWkt);
        h.set<std::uint8_t>(24, 1);
        h.set<std::uint8_t>(25, 4);
        h.text(26, "simulation", 32);
        h.text(58, "citysplat", 32);
        h.set<std::uint16_t>(90, 1);
        h.set<std::uint16_t>(92, 2000);  // no clock in results
        h.set(94, static_cast<std::uint16_t>(kHeaderBytes));
        h.set(96, static_cast<std::uint32_t>(kHeaderBytes + vlrs.size()));
        h.set(100, vlr_count);
        h.set<std::uint8_t>(104, 6);
        h.set(105, static_cast<std::uint16_t>(kPointBytes + kReturnBytes));
        for (int i = 0; i < 3; ++i) h.set(131 + 8 * static_cast<std::size_t>(i), kScale_m);
        h.set(155, layout.offset_m);
        h.set(179, summary.max.x), h.set(187, summary.min.x);
        h.set(195, summary.max.y), h.set(203, summary.min.y);
        h.set(211, summary.max.z), h.set(219, summary.min.z);
        h.set(247, summary.points);
        h.set(255, summary.points);  // all are first returns
        return h.data() + vlrs;
    }

    void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                CloudSummary& summary) const override {
        const std::size_t before = out.size();
        out.resize(before + scan.returns.size() * (kPointBytes + kReturnBytes));
        std::byte* at = out.data() + before;
        for_each_point(scan, layout, [&](const Return& r, Vec3d p) {
            const auto stored = [](double v, double offset) {
                return static_cast<std::int32_t>(
                    std::clamp(std::floor((v - offset) / kScale_m + 0.5), -2147483647.0, 2147483647.0));
            };
            const std::int32_t x = stored(p.x, layout.offset_m.x), y = stored(p.y, layout.offset_m.y),
                               z = stored(p.z, layout.offset_m.z);
            put(at, x), put(at, y), put(at, z);
            put(at, r.intensity);
            put<std::uint8_t>(at, 0x11);  // return 1 of 1
            put<std::uint8_t>(at, 0);
            put(at, static_cast<std::uint8_t>(r.label < 256 ? r.label : 0));
            put<std::uint8_t>(at, 0);
            put<std::int16_t>(at, 0);
            put(at, static_cast<std::uint16_t>(r.beam));
            put(at, scan.time_s + static_cast<double>(r.time_s));
            put_return(at, r);
            summary.add({x * kScale_m + layout.offset_m.x, y * kScale_m + layout.offset_m.y,
                         z * kScale_m + layout.offset_m.z});
        });
        out.resize(static_cast<std::size_t>(at - out.data()));
    }
};

}  // namespace

std::unique_ptr<ScanFormat> make_las_format() { return std::make_unique<LasFormat>(); }

}  // namespace citysplat::sim
