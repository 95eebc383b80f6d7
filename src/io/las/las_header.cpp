#include "io/las/las_header.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/bytes_le.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace citysplat::io {

namespace {

constexpr std::array<std::uint16_t, 6> kHeaderBytes{227, 227, 227, 235, 375, 393};
constexpr std::size_t kVlrBytes = 54, kEvlrBytes = 60, kExtraFieldBytes = 192;
/// Files have some hundred at most, one for each kind of waveform. In memory a record is larger than its head
/// in the file.
constexpr std::uint32_t kMostVlrs = 10'000;

[[noreturn]] void fail(const File& file, const std::string& what) {
    throw InputError(file.path().string() + ": " + what);
}

/// Fixed-width text up to its first zero; what is not printable becomes '?'.
std::string fixed_text(const std::byte* at, std::size_t width) {
    std::string out;
    for (std::size_t i = 0; i < width && at[i] != std::byte{0}; ++i) {
        const char c = static_cast<char>(at[i]);
        out += c >= 32 && c < 127 ? c : '?';
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
}

void read_versions(const File& file, const std::byte* raw, std::uint64_t size, LasHeader& h) {
    const int major = load_le<std::uint8_t>(raw + 24), minor = load_le<std::uint8_t>(raw + 25);
    if (major != 1 || minor > 5)
        fail(file, "byte 24: LAS version " + std::to_string(major) + "." + std::to_string(minor) +
                       " is not known; expected 1.0 to 1.5");
    h.version_minor = minor;
    h.header_bytes = load_le<std::uint16_t>(raw + 94);
    const std::uint16_t least = kHeaderBytes[static_cast<std::size_t>(minor)];
    if (h.header_bytes < least)
        fail(file, "byte 94: header size " + std::to_string(h.header_bytes) + "; LAS 1." +
                       std::to_string(minor) + " has at least " + std::to_string(least) + " bytes");
    if (h.header_bytes > size)
        fail(file, "the header is cut off: the file has " + std::to_string(size) + " of its " +
                       std::to_string(h.header_bytes) + " bytes");
}

void read_layout(const File& file, const std::byte* raw, std::uint64_t size, LasHeader& h) {
    h.points_offset = load_le<std::uint32_t>(raw + 96);
    if (h.points_offset < h.header_bytes || h.points_offset > size)
        fail(file, "byte 96: offset to point data " + std::to_string(h.points_offset) + "; expected " +
                       std::to_string(h.header_bytes) + " (end of header) to " + std::to_string(size) +
                       " (end of file)");
    const unsigned format = load_le<std::uint8_t>(raw + 104);
    h.compressed = (format & 0x80u) != 0;
    h.point_format = static_cast<int>(format & 0x3fu);
    if (h.point_format >= kLasFormats || (!h.compressed && format >= kLasFormats))
        fail(file, "byte 104: point format " + std::to_string(format) + " is not known; expected 0 to 10");
    if (h.point_format >= 6 && h.version_minor < 4)
        fail(file, "byte 104: point format " + std::to_string(h.point_format) + " does not exist in LAS 1." +
                       std::to_string(h.version_minor) + "; it came with 1.4");
    h.record_bytes = load_le<std::uint16_t>(raw + 105);
    const std::uint16_t least = kLasRecordBytes[static_cast<std::size_t>(h.point_format)];
    if (h.record_bytes < least)
        fail(file, "byte 105: point record length " + std::to_string(h.record_bytes) + "; point format " +
                       std::to_string(h.point_format) + " needs at least " + std::to_string(least));
}

void read_counts(const File& file, const std::byte* raw, bool salvage, LasHeader& h) {
    const std::uint32_t legacy = load_le<std::uint32_t>(raw + 107);
    h.points = legacy;
    for (std::size_t i = 0; i < 5; ++i) h.points_by_return[i] = load_le<std::uint32_t>(raw + 111 + 4 * i);
    if (h.version_minor >= 4) {
        h.points = load_le<std::uint64_t>(raw + 247);
        if (legacy != 0 && legacy != h.points)
            fail(file, "byte 247: number of points " + std::to_string(h.points) +
                           " disagrees with the legacy count " + std::to_string(legacy) + " at byte 107");
        for (std::size_t i = 0; i < 15; ++i)
            h.points_by_return[i] = load_le<std::uint64_t>(raw + 255 + 8 * i);
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t n : h.points_by_return) sum = checked_add(sum, n).value_or(UINT64_MAX);
    const auto bytes_by_return = checked_multiply(sum, h.record_bytes);
    const bool room = bytes_by_return && fits(h.points_offset, *bytes_by_return, file.size());
    if (sum > h.points && room && !h.compressed && !salvage)
        fail(file, "byte " + std::string(h.version_minor >= 4 ? "247" : "107") + ": number of points " +
                       std::to_string(h.points) + " disagrees with the " + std::to_string(sum) +
                       " counted by return, which the file has room for; --salvage reads the former");
    if (sum != 0 && sum != h.points)
        h.notes.push_back("the header counts " + std::to_string(sum) + " points by return, but " +
                          std::to_string(h.points) + " in all");
}

void read_geometry(const File& file, const std::byte* raw, LasHeader& h) {
    const auto f64 = [raw](std::size_t at) { return load_le<double>(raw + at); };
    h.scale = {f64(131), f64(139), f64(147)};
    h.offset = {f64(155), f64(163), f64(171)};
    h.bounds = {{f64(187), f64(203), f64(219)}, {f64(179), f64(195), f64(211)}};
    if (h.points == 0) return;
    const double scales[3]{h.scale.x, h.scale.y, h.scale.z}, offsets[3]{h.offset.x, h.offset.y, h.offset.z};
    const double lows[3]{h.bounds.min.x, h.bounds.min.y, h.bounds.min.z};
    const double highs[3]{h.bounds.max.x, h.bounds.max.y, h.bounds.max.z};
    for (std::size_t i = 0; i < 3; ++i) {
        const std::string axis(1, static_cast<char>('x' + i));
        if (!std::isfinite(scales[i]) || scales[i] == 0)
            fail(file, "byte " + std::to_string(131 + 8 * i) + ": " + axis + " scale " +
                           format_number(scales[i]) + "; expected a finite number other than 0");
        if (!std::isfinite(offsets[i]))
            fail(file, "byte " + std::to_string(155 + 8 * i) + ": " + axis + " offset " +
                           format_number(offsets[i]) + " is not finite");
        if (!std::isfinite(lows[i]) || !std::isfinite(highs[i]) || lows[i] > highs[i])
            fail(file, "byte " + std::to_string(179 + 16 * i) + ": bounds of " + axis + " from " +
                           format_number(lows[i]) + " to " + format_number(highs[i]) +
                           "; expected finite numbers in order");
    }
}

/// Waveforms and extended records lie behind the points. A count that is too low looks the same without them.
void look_behind_points(const std::byte* raw, std::uint64_t bytes, LasHeader& h) {
    const bool waveforms = h.version_minor >= 3 && load_le<std::uint64_t>(raw + 227) != 0;
    const bool records = h.version_minor >= 4 && load_le<std::uint32_t>(raw + 243) != 0;
    if (bytes < h.record_bytes || waveforms || records) return;
    h.notes.push_back(std::to_string(bytes) + " bytes behind the last point are not used; they would hold " +
                      std::to_string(bytes / h.record_bytes) + " more");
}

void check_points_fit(const File& file, const std::byte* raw, std::uint64_t size, bool salvage,
                      LasHeader& h) {
    if (h.compressed) return;  // the chunk table says where the points are
    const auto bytes = checked_multiply(h.points, h.record_bytes);
    const std::uint64_t room = size - h.points_offset;
    if (bytes && *bytes <= room) return look_behind_points(raw, room - *bytes, h);
    const std::uint64_t present = room / h.record_bytes;
    if (!salvage)
        fail(file, "claims " + std::to_string(h.points) + " points of " + std::to_string(h.record_bytes) +
                       " bytes at byte " + std::to_string(h.points_offset) + ", but ends after " +
                       std::to_string(present) + " of them (" + std::to_string(size) +
                       " bytes); --salvage reads what is there");
    h.points_lost = h.points - present;
    h.notes.push_back("cut off: " + std::to_string(h.points_lost) + " of " + std::to_string(h.points) +
                      " points are lost");
}

LasVlr parse_vlr(const std::byte* raw, std::uint64_t at, bool extended) {
    LasVlr v;
    v.user_id = fixed_text(raw + 2, 16);
    v.record_id = load_le<std::uint16_t>(raw + 18);
    v.length = extended ? load_le<std::uint64_t>(raw + 20) : load_le<std::uint16_t>(raw + 20);
    v.description = fixed_text(raw + (extended ? 28 : 22), 32);
    v.offset = at + (extended ? kEvlrBytes : kVlrBytes);
    v.extended = extended;
    return v;
}

/// Records in [at, end), one behind the other.
struct VlrChain {
    std::uint64_t at, end;
    std::uint32_t count;
    bool extended;
};

void read_vlr_chain(const File& file, const VlrChain& chain, std::vector<LasVlr>& out) {
    const auto [begin, end, count, extended] = chain;
    std::uint64_t at = begin;
    const std::string kind = extended ? "extended variable length record " : "variable length record ";
    const std::uint64_t head = extended ? kEvlrBytes : kVlrBytes;
    if (at > end || count > (end - at) / head)
        fail(file, "byte " + std::string(extended ? "243" : "100") + ": claims " + std::to_string(count) +
                       " " + (extended ? "extended " : "") + "variable length records, but only " +
                       std::to_string(at > end ? 0 : (end - at) / head) + " fit into bytes " +
                       std::to_string(at) + " to " + std::to_string(end));
    if (count > kMostVlrs)
        fail(file, "byte " + std::string(extended ? "243" : "100") + ": claims " + std::to_string(count) +
                       " " + (extended ? "extended " : "") + "variable length records; at most " +
                       std::to_string(kMostVlrs) + " are read");
    std::byte raw[kEvlrBytes];
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto where = [&] { return kind + std::to_string(i + 1) + " at byte " + std::to_string(at); };
        if (!fits(at, head, end))
            fail(file, where() + " of " + std::to_string(count) + " does not fit before byte " +
                           std::to_string(end));
        file.read_at(at, {raw, static_cast<std::size_t>(head)});
        LasVlr v = parse_vlr(raw, at, extended);
        if (!fits(v.offset, v.length, end))
            fail(file, where() + " (" + v.user_id + " " + std::to_string(v.record_id) + "): length " +
                           std::to_string(v.length) + " reaches beyond byte " + std::to_string(end));
        if (v.length <= kMaxVlrPayload) {
            v.payload.resize(v.length);
            file.read_at(v.offset, v.payload);
        }
        at = v.offset + v.length;
        out.push_back(std::move(v));
    }
}

void read_vlrs(const File& file, const std::byte* raw, std::uint64_t size, LasHeader& h) {
    read_vlr_chain(file, {h.header_bytes, h.points_offset, load_le<std::uint32_t>(raw + 100), false}, h.vlrs);
    if (h.version_minor < 4) return;
    const std::uint64_t first = load_le<std::uint64_t>(raw + 235);
    const std::uint32_t count = load_le<std::uint32_t>(raw + 243);
    if (count == 0) return;
    const std::uint64_t points_end =
        h.compressed ? h.points_offset : h.points_offset + h.readable_points() * h.record_bytes;
    if (first < points_end || first > size)
        fail(file, "byte 235: extended variable length records at byte " + std::to_string(first) +
                       "; expected " + std::to_string(points_end) + " (end of points) to " +
                       std::to_string(size) + " (end of file)");
    read_vlr_chain(file, {first, size, count, true}, h.vlrs);
}

std::size_t extra_field_bytes(int type, int options) {
    constexpr std::size_t kBytes[11]{0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    if (type == 0) return static_cast<std::size_t>(options);
    const auto base = static_cast<std::size_t>((type - 1) % 10 + 1),
               components = static_cast<std::size_t>((type - 1) / 10 + 1);
    return kBytes[base] * components;
}

void read_extra_fields(const File& file, LasHeader& h) {
    const std::size_t standard = kLasRecordBytes[static_cast<std::size_t>(h.point_format)];
    const LasVlr* vlr = h.find("LASF_Spec", 4);
    std::size_t at = standard;
    if (vlr && vlr->payload.size() % kExtraFieldBytes != 0)
        fail(file, "extra bytes record at byte " + std::to_string(vlr->offset) + ": length " +
                       std::to_string(vlr->length) + " is not a multiple of 192");
    for (std::size_t i = 0; vlr && i + kExtraFieldBytes <= vlr->payload.size(); i += kExtraFieldBytes) {
        const std::byte* raw = vlr->payload.data() + i;
        const int type = load_le<std::uint8_t>(raw + 2), options = load_le<std::uint8_t>(raw + 3);
        LasExtraField field;
        field.name = fixed_text(raw + 4, 32);
        field.type = type;
        field.at = at;
        if (type > 30)
            fail(file, "extra bytes \"" + field.name + "\": data type " + std::to_string(type) +
                           "; expected 0 to 30");
        field.bytes = extra_field_bytes(type, options);
        if (type != 0 && (options & 8)) field.scale = load_le<double>(raw + 112);
        if (type != 0 && (options & 16)) field.offset = load_le<double>(raw + 136);
        if (!std::isfinite(field.scale) || field.scale == 0 || !std::isfinite(field.offset))
            fail(file, "extra bytes \"" + field.name + "\": scale " + format_number(field.scale) +
                           ", offset " + format_number(field.offset) +
                           "; expected finite numbers and a scale other than 0");
        at += field.bytes;
        if (at > h.record_bytes)
            fail(file, "extra bytes \"" + field.name + "\" end at byte " + std::to_string(at) +
                           " of a point record of " + std::to_string(h.record_bytes) + " bytes");
        h.extra.push_back(std::move(field));
    }
    if (at < h.record_bytes)
        h.notes.push_back(std::to_string(h.record_bytes - at) +
                          " bytes of every point record are not described");
}

}  // namespace

const LasVlr* LasHeader::find(std::string_view user_id, std::uint16_t record_id) const {
    const auto found = std::find_if(vlrs.begin(), vlrs.end(), [&](const LasVlr& v) {
        return v.user_id == user_id && v.record_id == record_id;
    });
    return found == vlrs.end() ? nullptr : &*found;
}

LasHeader read_las_header(const File& file, bool salvage) {
    const std::uint64_t size = file.size();
    std::byte raw[393]{};
    const std::size_t got = file.read_some_at(0, raw);
    if (got < 4 || std::memcmp(raw, "LASF", 4) != 0)
        fail(file, got == 0 ? "the file is empty" : "byte 0: not a LAS file; expected the signature LASF");
    if (got < kHeaderBytes[0])
        fail(file, "the header is cut off: the file has " + std::to_string(got) +
                       " bytes, a LAS header at least " + std::to_string(kHeaderBytes[0]));
    LasHeader h;
    h.global_encoding = load_le<std::uint16_t>(raw + 6);
    h.system_id = fixed_text(raw + 26, 32);
    h.software = fixed_text(raw + 58, 32);
    read_versions(file, raw, size, h);
    read_layout(file, raw, size, h);
    read_counts(file, raw, salvage, h);
    read_geometry(file, raw, h);
    check_points_fit(file, raw, size, salvage, h);
    try {
        read_vlrs(file, raw, size, h);
        read_extra_fields(file, h);
    } catch (const InputError& e) {
        if (!salvage) throw;
        h.notes.push_back(e.what());
    }
    return h;
}

}  // namespace citysplat::io
