#pragma once

#include "core/file.hpp"
#include "io/point_file.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The header and the variable length records of LAS 1.0–1.5 (ASPRS), checked against the file.
namespace citysplat::io {

inline constexpr int kLasFormats = 11;
/// Bytes of the fields that the specification gives to point formats 0–10.
inline constexpr std::array<std::uint16_t, kLasFormats> kLasRecordBytes{20, 28, 26, 34, 57, 63,
                                                                        30, 36, 38, 59, 67};

/// A variable length record, extended or not. The payload is read; waveform packets are not.
struct LasVlr {
    std::string user_id;
    std::uint16_t record_id = 0;
    std::string description;
    std::uint64_t offset = 0;  ///< of the payload in the file
    std::uint64_t length = 0;
    bool extended = false;
    std::vector<std::byte> payload;  ///< empty when larger than kMaxVlrPayload
};
inline constexpr std::uint64_t kMaxVlrPayload = std::uint64_t{16} << 20;

/// One column of the "extra bytes" behind the standard fields of a record (LAS 1.4, R15 §2.7).
struct LasExtraField {
    std::string name;
    int type = 0;           ///< 1 u8, 2 i8, 3 u16, 4 i16, 5 u32, 6 i32, 7 u64, 8 i64, 9 f32, 10 f64
    std::size_t at = 0;     ///< byte in the record
    std::size_t bytes = 0;  ///< of all components
    double scale = 1, offset = 0;
};

struct LasHeader {
    int version_minor = 0;
    std::uint16_t global_encoding = 0;
    std::string system_id, software;
    std::uint16_t header_bytes = 0;
    std::uint32_t points_offset = 0;
    int point_format = 0;
    bool compressed = false;
    std::uint16_t record_bytes = 0;
    std::uint64_t points = 0;       ///< as the header claims
    std::uint64_t points_lost = 0;  ///< claimed, but beyond the end of the file (salvage)
    Vec3d scale{}, offset{};
    Box3d bounds;
    std::array<std::uint64_t, 15> points_by_return{};
    std::vector<LasVlr> vlrs;
    std::vector<LasExtraField> extra;
    std::vector<std::string> notes;

    const LasVlr* find(std::string_view user_id, std::uint16_t record_id) const;
    std::uint64_t readable_points() const { return points - points_lost; }
};

/// Reads and checks everything but the points. Throws InputError naming field, value and what was expected.
/// With `salvage`, points beyond the end of the file are counted instead.
LasHeader read_las_header(const File& file, bool salvage);

}  // namespace citysplat::io
