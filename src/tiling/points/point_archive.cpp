#include "tiling/points/point_archive.hpp"

#include "core/error.hpp"
#include "tiling/points/canonical_order.hpp"
#include "tiling/points/point_codec.hpp"
#include "tiling/points/ray.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace citysplat::tiling {

namespace {

constexpr Magic kMagic = magic_of(ObjectKind::archive);
constexpr std::array<char, 8> kEndMagic{'C', 'S', 'P', 'E', 'N', 'D', '.', '\n'};
/// Version 1 had points without time; its segments say so themselves (PointLayout). The directory has the
/// reach of a segment since version 3.
constexpr std::uint32_t kVersion = 3, kOldestVersion = 1;
/// A cell with more points becomes several spans: bounds what a reader must hold beside its result.
constexpr std::size_t kMaxSpanPoints = std::size_t{1} << 18;

struct Header {
    std::array<char, 8> magic;
    std::uint32_t version, zero;
    Hash128 identity;
    std::array<std::uint64_t, 4> reserved;
};
static_assert(sizeof(Header) == 64);

struct SegmentHeader {
    std::uint32_t spans;
    PointLayout layout;
    std::uint64_t checksum;  ///< of the table that follows
};
struct SpanEntry {
    std::uint32_t cell, points, bytes, zero;
    std::uint64_t checksum;
};
static_assert(sizeof(SpanEntry) == 24);

struct DirectoryEntry {
    std::int32_t x, y;
    std::uint64_t points, accepted, offset, bytes;
    Hash128 hash;
    SectorBox reach;
};
static_assert(sizeof(DirectoryEntry) == 72);
constexpr std::size_t kEntryBytesBefore3 = offsetof(DirectoryEntry, reach);
static_assert(kEntryBytesBefore3 == 56);

struct SourceEntry {
    Hash128 content;
    std::uint64_t content_bytes;
    PointCounts counts;
    LatticeBox bounds;
    std::uint32_t format_bytes, crs_bytes;
};
static_assert(sizeof(SourceEntry) == 136);

struct Trailer {
    std::uint64_t directory_offset, segments, directory_bytes, checksum;
    std::array<std::uint64_t, 3> reserved;
    std::array<char, 8> magic;
};
static_assert(sizeof(Trailer) == 64);

template <class T>
void put(std::vector<std::byte>& out, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

void put(std::vector<std::byte>& out, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Orders the points by cell, then canonically.
void sort_by_cell(std::vector<TilePoint>& points, std::array<std::size_t, kCellsPerSector + 1>& begin) {
    begin.fill(0);
    for (const TilePoint& p : points) ++begin[static_cast<std::size_t>(cell_of(p.x, p.y)) + 1];
    for (std::size_t c = 0; c < kCellsPerSector; ++c) begin[c + 1] += begin[c];
    std::vector<TilePoint> sorted(points.size());
    auto next = begin;
    for (const TilePoint& p : points) sorted[next[static_cast<std::size_t>(cell_of(p.x, p.y))]++] = p;
    points = std::move(sorted);  // sorting a crowded cell takes a copy of its own
    for (std::size_t c = 0; c < kCellsPerSector; ++c)
        sort_in_column(std::span(points).subspan(begin[c], begin[c + 1] - begin[c]),
                       static_cast<std::int32_t>(c / kCellsPerSide) << kCellShift);
}

}  // namespace

SegmentEncoder::SegmentEncoder(const Sector& sector) {
    static_assert(sizeof(Span) == sizeof(SpanEntry));
    row_.sector_x = sector.x;
    row_.sector_y = sector.y;
}

void SegmentEncoder::add(std::vector<TilePoint>& points) {
    std::array<std::size_t, kCellsPerSector + 1> begin;
    sort_by_cell(points, begin);
    row_.accepted += points.size();
    const Sector sector{row_.sector_x, row_.sector_y};
    for (const TilePoint& p : points) row_.reach.add(reach_of(p, sector));
    for (std::size_t c = 0; c < kCellsPerSector; ++c) {
        const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin[c]);
        const auto last = std::unique(first, points.begin() + static_cast<std::ptrdiff_t>(begin[c + 1]));
        std::span<const TilePoint> left(first, last);
        while (!left.empty()) {
            const auto part = left.first(std::min(left.size(), kMaxSpanPoints));
            left = left.subspan(part.size());
            const std::size_t at = data_.size();
            encode_points(part, data_);
            table_.push_back({.cell = static_cast<std::uint32_t>(c),
                              .points = static_cast<std::uint32_t>(part.size()),
                              .bytes = static_cast<std::uint32_t>(data_.size() - at),
                              .zero = 0,
                              .checksum = checksum_points(part, PointLayout::with_time)});
            hasher_.number(static_cast<std::uint32_t>(c)).bytes(std::as_bytes(part));
            row_.points += part.size();
        }
    }
}

EncodedSegment SegmentEncoder::finish() {
    EncodedSegment segment{row_, {}, std::move(data_)};
    const auto table = std::as_bytes(std::span(table_));
    put(segment.table, SegmentHeader{static_cast<std::uint32_t>(table_.size()), PointLayout::with_time,
                                     checksum_bytes(table)});
    segment.table.insert(segment.table.end(), table.begin(), table.end());
    segment.row.bytes = segment.table.size() + segment.cells.size();
    segment.row.hash = hasher_.finish();
    return segment;
}

ArchiveWriter::ArchiveWriter(ObjectStore& store, const Hash128& identity) : writer_(store.create()) {
    const Header header{
        .magic = kMagic, .version = kVersion, .zero = 0, .identity = identity, .reserved = {}};
    writer_.append(std::as_bytes(std::span(&header, 1)));
}

void ArchiveWriter::append(EncodedSegment segment) {
    segment.row.offset = writer_.position();
    writer_.append(segment.table);
    writer_.append(segment.cells);
    segments_.push_back(segment.row);
}

void ArchiveWriter::finish(SourceRow& source) {
    std::vector<std::byte> directory;
    for (const SegmentRow& g : segments_)
        put(directory,
            DirectoryEntry{g.sector_x, g.sector_y, g.points, g.accepted, g.offset, g.bytes, g.hash, g.reach});
    put(directory, SourceEntry{.content = source.content,
                               .content_bytes = source.content_bytes,
                               .counts = source.counts,
                               .bounds = source.bounds,
                               .format_bytes = static_cast<std::uint32_t>(source.format.size()),
                               .crs_bytes = static_cast<std::uint32_t>(source.crs.size())});
    put(directory, source.format);
    put(directory, source.crs);
    const Trailer trailer{.directory_offset = writer_.position(),
                          .segments = segments_.size(),
                          .directory_bytes = directory.size(),
                          .checksum = checksum_bytes(directory),
                          .reserved = {},
                          .magic = kEndMagic};
    writer_.append(directory);
    writer_.append(std::as_bytes(std::span(&trailer, 1)));
    source.object_bytes = writer_.position();
    source.object = writer_.finish();
}

bool is_archive(const File& file) {
    std::array<char, 8> magic{};
    file.read_some_at(0, std::as_writable_bytes(std::span(magic)));
    return magic == kMagic;
}

CitySource read_directory(const File& file, const Hash128& object) {
    const auto damaged = [&](const char* why) {
        throw CorruptionError("archive " + file.path().string() + ": " + why);
    };
    const std::uint64_t size = file.size();
    Header header;
    Trailer trailer;
    if (size < sizeof header + sizeof trailer) damaged("is too short");
    file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
    if (header.magic != kMagic || header.version < kOldestVersion || header.version > kVersion)
        damaged("is not a point archive of this version");
    const std::size_t entry_bytes = header.version < 3 ? kEntryBytesBefore3 : sizeof(DirectoryEntry);
    file.read_at(size - sizeof trailer, std::as_writable_bytes(std::span(&trailer, 1)));
    if (trailer.magic != kEndMagic || trailer.directory_bytes > size ||
        trailer.directory_offset + trailer.directory_bytes + sizeof trailer != size ||
        trailer.segments > trailer.directory_bytes / entry_bytes ||
        trailer.segments * entry_bytes + sizeof(SourceEntry) > trailer.directory_bytes)
        damaged("has no valid trailer");
    std::vector<std::byte> bytes(trailer.directory_bytes);
    file.read_at(trailer.directory_offset, bytes);
    if (checksum_bytes(bytes) != trailer.checksum) damaged("has a damaged directory");

    CitySource directory;
    const std::byte* at = bytes.data();
    for (std::uint64_t i = 0; i < trailer.segments; ++i, at += entry_bytes) {
        DirectoryEntry e{};
        std::memcpy(&e, at, entry_bytes);
        directory.segments.push_back({.sector_x = e.x,
                                      .sector_y = e.y,
                                      .points = e.points,
                                      .accepted = e.accepted,
                                      .offset = e.offset,
                                      .bytes = e.bytes,
                                      .hash = e.hash,
                                      .reach = e.reach});
    }
    SourceEntry e;
    std::memcpy(&e, at, sizeof e);
    at += sizeof e;
    if (at + e.format_bytes + e.crs_bytes != bytes.data() + bytes.size()) damaged("has a damaged directory");
    const char* text = reinterpret_cast<const char*>(at);
    directory.row = {.id = 0,
                     .identity = header.identity,
                     .content = e.content,
                     .content_bytes = e.content_bytes,
                     .object = object,
                     .object_bytes = size,
                     .format = std::string(text, e.format_bytes),
                     .crs = std::string(text + e.format_bytes, e.crs_bytes),
                     .counts = e.counts,
                     .bounds = e.bounds};
    return directory;
}

std::vector<CellSpan> read_cells(const File& file, const SegmentRow& segment, const std::string& what) {
    const auto damaged = [&] {
        throw CorruptionError(
            what + ": the table of cells at byte " + std::to_string(segment.offset) + " of " +
            file.path().string() +
            " is damaged; citysplat verify --deep --set-aside, then citysplat build read the input again");
    };
    SegmentHeader header{};
    const auto header_bytes = std::as_writable_bytes(std::span(&header, 1));
    if (segment.bytes < sizeof header || file.read_some_at(segment.offset, header_bytes) != sizeof header ||
        header.spans > (segment.bytes - sizeof header) / sizeof(SpanEntry) ||
        header.layout > PointLayout::with_time)
        damaged();
    std::vector<SpanEntry> table(header.spans);
    const auto table_bytes = std::as_writable_bytes(std::span(table));
    if (file.read_some_at(segment.offset + sizeof header, table_bytes) != table_bytes.size() ||
        checksum_bytes(table_bytes) != header.checksum)
        damaged();
    std::vector<CellSpan> cells;
    cells.reserve(table.size());
    std::uint64_t at = segment.offset + sizeof header + table_bytes.size();
    for (const SpanEntry& e : table) {
        if (e.cell >= kCellsPerSector || at + e.bytes > segment.offset + segment.bytes) damaged();
        cells.push_back({static_cast<int>(e.cell), e.points, at, e.bytes, e.checksum, header.layout});
        at += e.bytes;
    }
    return cells;
}

void decode_cell(std::span<const std::byte> bytes, const CellSpan& cell, std::vector<TilePoint>& out,
                 const std::string& what) {
    const std::size_t at = out.size();
    if (!decode_points({bytes, cell.points, cell.cell, cell.layout}, out) ||
        checksum_points(std::span(out).subspan(at), cell.layout) != cell.checksum)
        throw CorruptionError(
            what + ": the points at byte " + std::to_string(cell.offset) +
            " are damaged; citysplat verify --deep --set-aside, then citysplat build read the input again");
}

}  // namespace citysplat::tiling
