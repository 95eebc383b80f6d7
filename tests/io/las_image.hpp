#pragma once

#include "core/file.hpp"
#include "io/las/las_header.hpp"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::test {

/// A LAS file made by hand, so that tests can lie in any byte of it.
struct LasImage {
    std::vector<std::byte> bytes;

    template <class T>
    LasImage& set(std::size_t at, T value) {
        if (bytes.size() < at + sizeof value) bytes.resize(at + sizeof value);
        std::memcpy(bytes.data() + at, &value, sizeof value);
        return *this;
    }
    LasImage& text(std::size_t at, std::string_view s) {
        if (bytes.size() < at + s.size()) bytes.resize(at + s.size());
        std::memcpy(bytes.data() + at, s.data(), s.size());
        return *this;
    }
    LasImage& cut(std::size_t size) {
        bytes.resize(size);
        return *this;
    }
    std::uint32_t points_offset() const {
        std::uint32_t v;
        std::memcpy(&v, bytes.data() + 96, 4);
        return v;
    }
    std::filesystem::path write(const std::filesystem::path& path) const {
        FileWriter out(path);
        out.write(bytes);
        out.finish();
        return path;
    }
};

inline constexpr std::size_t kLasVlrHead = 54;

/// `points` points on a line, x = i, y = 2 i, z = −i in steps of 0.01 from (100, 200, 0), of any version and
/// format, with `vlrs` as (user, id, payload).
struct LasVlrImage {
    std::string user;
    std::uint16_t id;
    std::string payload;
};
inline LasImage las_image(int minor, int format, std::uint32_t points, std::uint16_t extra_bytes = 0,
                          const std::vector<LasVlrImage>& vlrs = {}) {
    constexpr std::uint16_t kHeader[6]{227, 227, 227, 235, 375, 393};
    const std::uint16_t header = kHeader[minor];
    const auto record =
        static_cast<std::uint16_t>(io::kLasRecordBytes[static_cast<std::size_t>(format)] + extra_bytes);
    LasImage f;
    f.bytes.resize(header);
    f.text(0, "LASF").set<std::uint8_t>(24, 1).set<std::uint8_t>(25, static_cast<std::uint8_t>(minor));
    f.text(26, "test").text(58, "by hand").set(94, header);
    for (const auto& v : vlrs) {
        const std::size_t at = f.bytes.size();
        f.bytes.resize(at + kLasVlrHead);
        f.text(at + 2, v.user).set(at + 18, v.id).set(at + 20, static_cast<std::uint16_t>(v.payload.size()));
        f.text(at + kLasVlrHead, v.payload);
    }
    const std::size_t begin = f.bytes.size();
    f.set(96, static_cast<std::uint32_t>(begin)).set(100, static_cast<std::uint32_t>(vlrs.size()));
    f.set(104, static_cast<std::uint8_t>(format)).set(105, record).set(107, format >= 6 ? 0u : points);
    if (minor >= 4) f.set<std::uint64_t>(247, points);
    const double last = points ? 0.01 * (points - 1) : 0;
    const double geometry[12]{0.01, 0.01, 0.01, 100, 200, 0, 100 + last, 100, 200 + 2 * last, 200, 0, -last};
    for (std::size_t i = 0; i < 12; ++i) f.set(131 + 8 * i, geometry[i]);
    f.bytes.resize(begin + std::size_t{record} * points);
    for (std::uint32_t i = 0; i < points; ++i) {
        const std::size_t at = begin + std::size_t{record} * i;
        const auto n = static_cast<std::int32_t>(i);
        f.set(at, n).set(at + 4, 2 * n).set(at + 8, -n).set(at + 12, static_cast<std::uint16_t>(1000 + i));
        f.set(at + (format >= 6 ? 16 : 15), static_cast<std::uint8_t>(i % 20));
        if (format >= 6)
            f.set(at + 18, static_cast<std::int16_t>(500));
        else
            f.set(at + 16, static_cast<std::int8_t>(-3));
        if (format != 0 && format != 2) f.set(at + (format >= 6 ? 22 : 20), 1000.0 + i);
    }
    return f;
}

}  // namespace citysplat::test
