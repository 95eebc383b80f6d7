#include "io/las/chunk_table.hpp"

#include "core/error.hpp"
#include "io/bytes_le.hpp"
#include "io/las/integer_decoder.hpp"

#include <algorithm>

namespace citysplat::io {

namespace {

/// Chunk sizes that mean "see the chunk table". 0 is what some COPC writers left there.
bool is_variable(std::uint32_t chunk_points) { return chunk_points == 0 || chunk_points == 0xffffffffu; }

constexpr std::size_t kVlrFixedBytes = 34;
/// The best that LASzip does on identical points is some hundred points per byte; more is a lie.
constexpr std::uint64_t kMaxPointsPerByte = 8192;
constexpr std::uint64_t kMaxChunkPoints = std::uint64_t{1} << 24;

[[noreturn]] void fail(const File& file, const std::string& what) {
    throw InputError(file.path().string() + ": " + what);
}

const LasVlr* find_laszip(const LasHeader& h) { return h.find("laszip encoded", 22204); }

struct LaszipItem {
    std::uint16_t type = 0, bytes = 0, version = 0;
};

/// The LASzip record: which compressor, how many points a chunk, how the record is divided.
struct LaszipRecord {
    std::uint16_t compressor = 0, coder = 0;
    std::uint32_t chunk_points = 0;
    std::vector<LaszipItem> items;
};

LaszipRecord parse(const LasVlr& vlr) {
    LaszipRecord r;
    const std::byte* raw = vlr.payload.data();
    r.compressor = load_le<std::uint16_t>(raw);
    r.coder = load_le<std::uint16_t>(raw + 2);
    r.chunk_points = load_le<std::uint32_t>(raw + 12);
    const std::size_t room = (vlr.payload.size() - kVlrFixedBytes) / 6;
    const std::size_t count = std::min<std::size_t>(load_le<std::uint16_t>(raw + 32), room);
    for (std::size_t i = 0; i < count; ++i) {
        const std::byte* item = raw + kVlrFixedBytes + 6 * i;
        r.items.push_back({load_le<std::uint16_t>(item), load_le<std::uint16_t>(item + 2),
                           load_le<std::uint16_t>(item + 4)});
    }
    return r;
}

/// Types of the items that a point format is made of (LASzip's numbers); extra bytes follow.
std::vector<std::uint16_t> expected_items(int format) {
    constexpr std::uint16_t kPoint10 = 6, kTime = 7, kRgb12 = 8, kWave13 = 9, kPoint14 = 10, kRgb14 = 11,
                            kRgbNir14 = 12, kWave14 = 13;
    switch (format) {
        case 0:
            return {kPoint10};
        case 1:
            return {kPoint10, kTime};
        case 2:
            return {kPoint10, kRgb12};
        case 3:
            return {kPoint10, kTime, kRgb12};
        case 4:
            return {kPoint10, kTime, kWave13};
        case 5:
            return {kPoint10, kTime, kRgb12, kWave13};
        case 6:
            return {kPoint14};
        case 7:
            return {kPoint14, kRgb14};
        case 8:
            return {kPoint14, kRgbNir14};
        case 9:
            return {kPoint14, kWave14};
        default:
            return {kPoint14, kRgbNir14, kWave14};
    }
}

void check_items(const File& file, const LasHeader& h, const LaszipRecord& r, const std::string& where) {
    std::uint64_t bytes = 0;
    for (const auto& item : r.items) bytes += item.bytes;
    if (bytes != h.record_bytes)
        fail(file, where + ": its items have " + std::to_string(bytes) + " bytes, a point record has " +
                       std::to_string(h.record_bytes));
    const auto expected = expected_items(h.point_format);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const int found = i < r.items.size() ? r.items[i].type : -1;
        if (found != expected[i])
            fail(file, where + ": item " + std::to_string(i + 1) + " has type " + std::to_string(found) +
                           "; point format " + std::to_string(h.point_format) + " has " +
                           std::to_string(expected[i]));
    }
    constexpr std::uint16_t kBytes = 0, kBytes14 = 14;
    const bool rest_good = r.items.size() <= expected.size() + 1 &&
                           (r.items.size() == expected.size() ||
                            r.items.back().type == (h.point_format >= 6 ? kBytes14 : kBytes));
    if (!rest_good)
        fail(file, where + ": unknown items behind those of point format " + std::to_string(h.point_format));
}

LaszipRecord checked_record(const File& file, const LasHeader& h) {
    const LasVlr* vlr = find_laszip(h);
    if (!vlr)
        fail(file, "the point format says compressed, but there is no LASzip record (laszip encoded, 22204)");
    const std::string where = "LASzip record at byte " + std::to_string(vlr->offset);
    if (vlr->payload.size() < kVlrFixedBytes)
        fail(file, where + ": " + std::to_string(vlr->payload.size()) + " bytes; expected at least 34");
    LaszipRecord r = parse(*vlr);
    if (r.compressor == 0 || r.compressor > 3)
        fail(file, where + ": compressor " + std::to_string(r.compressor) + "; expected 1 to 3");
    if (r.coder != 0) fail(file, where + ": coder " + std::to_string(r.coder) + "; expected 0 (arithmetic)");
    check_items(file, h, r, where);
    return r;
}

/// The offset of the table is in front of the points, or, from writers that cannot seek, −1 there and the
/// offset in the last 8 bytes of the file.
std::uint64_t find_table(const File& file, const LasHeader& h) {
    const std::uint64_t size = file.size(), begin = h.points_offset;
    std::byte raw[8];
    if (!fits(begin, 8, size))
        fail(file, "ends before the offset of the chunk table at byte " + std::to_string(begin));
    file.read_at(begin, raw);
    auto offset = load_le<std::int64_t>(raw);
    if (offset == -1) {
        file.read_at(size - 8, raw);
        offset = load_le<std::int64_t>(raw);
    }
    const bool inside = offset >= 0 && static_cast<std::uint64_t>(offset) >= begin + 8 &&
                        fits(static_cast<std::uint64_t>(offset), 8, size);
    if (!inside)
        fail(file, "byte " + std::to_string(begin) + ": chunk table at byte " + std::to_string(offset) +
                       "; expected " + std::to_string(begin + 8) + " to " + std::to_string(size - 8));
    return static_cast<std::uint64_t>(offset);
}

void check_chunk(const File& file, const LasHeader& h, const LazChunk& c, std::size_t index,
                 std::uint64_t table) {
    const std::string where = "chunk " + std::to_string(index) + " at byte " + std::to_string(c.offset);
    if (!fits(c.offset, c.bytes, table))
        fail(file, where + ": " + std::to_string(c.bytes) + " bytes reach beyond the chunk table at byte " +
                       std::to_string(table));
    if (c.points == 0) fail(file, where + ": no points in it");
    if (c.bytes < h.record_bytes)
        fail(file, where + ": " + std::to_string(c.bytes) + " bytes cannot hold its first point of " +
                       std::to_string(h.record_bytes));
    if (c.points > kMaxChunkPoints || c.points / kMaxPointsPerByte > c.bytes)
        fail(file, where + ": claims " + std::to_string(c.points) + " points in " + std::to_string(c.bytes) +
                       " bytes");
}

}  // namespace

std::string laz_unsupported(const File& file, const LasHeader& h) {
    const LaszipRecord r = checked_record(file, h);
    if (h.point_format == 4 || h.point_format == 5)
        return "compressed waveform point format " + std::to_string(h.point_format);
    if (r.compressor == 1) return "LASzip 1 compression without chunks (2010)";
    if (r.compressor == 2 && h.point_format >= 6)
        return "LASzip compression of point format " + std::to_string(h.point_format) + " without layers";
    for (const auto& item : r.items) {
        if (item.version < 2) return "items of LASzip version 1 (2010)";
        if (item.version > (r.compressor == 3 ? 4 : 2))
            return "an item of LASzip version " + std::to_string(item.version);
    }
    return {};
}

bool laz_is_chunked(const File& file, const LasHeader& h) { return checked_record(file, h).compressor != 1; }

std::vector<LazChunk> read_laz_chunks(const File& file, const LasHeader& h) {
    const LaszipRecord record = checked_record(file, h);
    std::vector<LazChunk> chunks;
    if (h.points == 0) return chunks;
    const std::string record_name = "LASzip record at byte " + std::to_string(find_laszip(h)->offset);
    if (record.compressor != (h.point_format >= 6 ? 3 : 2))
        fail(file, record_name + ": compressor " + std::to_string(record.compressor) +
                       " does not go with point format " + std::to_string(h.point_format));
    const std::uint64_t table = find_table(file, h), data_begin = h.points_offset + std::uint64_t{8};
    std::byte raw[8];
    file.read_at(table, raw);
    const std::uint32_t version = load_le<std::uint32_t>(raw), count = load_le<std::uint32_t>(raw + 4);
    const std::string where = "chunk table at byte " + std::to_string(table);
    if (version != 0) fail(file, where + ": version " + std::to_string(version) + "; expected 0");
    const std::uint64_t most = (table - data_begin) / h.record_bytes;
    const bool variable = is_variable(record.chunk_points);
    const std::uint64_t expected = variable ? count : (h.points - 1) / record.chunk_points + 1;
    if (count == 0 || count > most || count != expected)
        fail(file, where + ": " + std::to_string(count) + " chunks; " +
                       (count > most ? "only " + std::to_string(most) + " fit into the file"
                                     : "expected " + std::to_string(expected) + " for " +
                                           std::to_string(h.points) + " points"));
    std::vector<std::byte> packed(static_cast<std::size_t>(
        std::min<std::uint64_t>(file.size() - table - 8, std::uint64_t{16} * count + 64)));
    file.read_at(table + 8, packed);
    if (packed.size() < 4) fail(file, where + " is cut off");
    LazIntegerDecoder numbers(packed);
    chunks.reserve(count);
    std::uint32_t points = 0, bytes = 0;
    LazChunk next{data_begin, 0, 0, 0};
    for (std::uint32_t i = 0; i < count; ++i) {
        if (variable) points = numbers.next(points, 0);
        bytes = numbers.next(bytes, 1);
        next.bytes = bytes;
        next.points =
            variable ? points : std::min<std::uint64_t>(record.chunk_points, h.points - next.first_point);
        check_chunk(file, h, next, i, table);
        chunks.push_back(next);
        next.offset += next.bytes;
        next.first_point += next.points;
    }
    if (next.first_point != h.points)
        fail(file, where + ": the chunks hold " + std::to_string(next.first_point) +
                       " points, the header claims " + std::to_string(h.points) +
                       (record.chunk_points == 0
                            ? "; the chunk size of 0 in the " + record_name + " may be the mistake"
                            : ""));
    return chunks;
}

}  // namespace citysplat::io
