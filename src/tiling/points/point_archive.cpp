#include "tiling/points/point_archive.hpp"

#include "core/error.hpp"
#include "tiling/points/canonical_order.hpp"
#include "tiling/points/point_codec.hpp"
#include "tiling/points/ray.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace citysplat::tiling {

namespace {

constexpr Magic kMagic = magic_of(ObjectKind::archive);
constexpr std::array<char, 8> kEndMagic{'C', 'S', 'P', 'E', 'N', 'D', '.', '\n'};
/// Version 1 had points without time; its segments say so themselves (PointLayout). The directory has the
/// reach of a segment since version 3, segments have their rays since version 4.
constexpr std::uint32_t kVersion = 4, kOldestVersion = 1;
/// A cell with more points becomes several spans: bounds what a reader must hold beside its result.
constexpr std::size_t kMaxSpanPoints = std::size_t{1} << 18;
/// Few enough to come from nearly one place, so that what they pass is a narrow box.
constexpr std::size_t kRaysPerSpan = 4096;
/// What a span of rays has in the place of the cell's number.
constexpr std::uint32_t kRayCell = kCellsPerSector;

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
    std::uint32_t cell, points, bytes;
    std::uint32_t passed;  ///< of rays: PassedCells; 0 of points
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

/// Whether the catalog would give the numbers back.
bool is_possible(const SegmentRow& s) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto is_sector = [](std::int64_t i) { return i >= -kMostSector && i <= kMostSector; };
    return is_sector(s.sector_x) && is_sector(s.sector_y) && is_sector(s.reach.min_x) &&
           is_sector(s.reach.min_y) && is_sector(s.reach.max_x) && is_sector(s.reach.max_y) &&
           s.points <= kMost && s.accepted <= kMost && s.offset <= kMost && s.bytes <= kMost;
}

/// The cells that rays pass, counted from the sector's first one, both ends included. Rays are cut to 128 m,
/// so that 8 bits hold them.
struct PassedCells {
    std::int8_t min_x, min_y, max_x, max_y;

    static PassedCells of(const LatticeBox& box, const Sector& sector) {
        const auto cell = [](std::int64_t steps) { return static_cast<std::int8_t>(steps >> kCellShift); };
        return {cell(box.min_x - sector.origin_x()), cell(box.min_y - sector.origin_y()),
                cell(box.max_x - 1 - sector.origin_x()), cell(box.max_y - 1 - sector.origin_y())};
    }
    LatticeBox box(const Sector& sector) const {
        return {sector.origin_x() + min_x * kCellSteps, sector.origin_y() + min_y * kCellSteps,
                sector.origin_x() + (max_x + 1) * kCellSteps, sector.origin_y() + (max_y + 1) * kCellSteps};
    }
};
static_assert(sizeof(PassedCells) == sizeof(std::uint32_t));
static_assert((kLongestRaySteps + kSectorSteps + kVoxelSteps) / kCellSteps < 127);

/// Rays by time; those of a slot stay in order. Mostly a sector is passed within few slots.
void sort_by_slot(std::vector<Ray>& rays) {
    const auto [first, last] = std::minmax_element(
        rays.begin(), rays.end(), [](const Ray& a, const Ray& b) { return a.slot < b.slot; });
    const std::uint64_t least = first->slot, range = last->slot - least + 1;
    if (range > rays.size() + 1024) {
        std::stable_sort(rays.begin(), rays.end(),
                         [](const Ray& a, const Ray& b) { return a.slot < b.slot; });
        return;
    }
    std::vector<std::size_t> next(range + 1, 0);
    for (const Ray& r : rays) ++next[r.slot - least + 1];
    for (std::size_t s = 1; s < next.size(); ++s) next[s] += next[s - 1];
    std::vector<Ray> sorted(rays.size());
    for (const Ray& r : rays) sorted[next[r.slot - least]++] = r;
    rays = std::move(sorted);
}

template <class T>
void put(std::vector<std::byte>& out, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

void put(std::vector<std::byte>& out, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Orders the points by cell.
void group_by_cell(std::vector<TilePoint>& points, std::array<std::size_t, kCellsPerSector + 1>& begin) {
    begin.fill(0);
    for (const TilePoint& p : points) ++begin[static_cast<std::size_t>(cell_of(p.x, p.y)) + 1];
    for (std::size_t c = 0; c < kCellsPerSector; ++c) begin[c + 1] += begin[c];
    std::vector<TilePoint> sorted(points.size());
    auto next = begin;
    for (const TilePoint& p : points) sorted[next[static_cast<std::size_t>(cell_of(p.x, p.y))]++] = p;
    points = std::move(sorted);  // sorting a crowded cell takes a copy of its own
}

}  // namespace

SegmentEncoder::SegmentEncoder(const Sector& sector) {
    static_assert(sizeof(Span) == sizeof(SpanEntry));
    row_.sector_x = sector.x;
    row_.sector_y = sector.y;
}

void SegmentEncoder::add(std::vector<TilePoint>& points, const CancelToken& cancel) {
    std::array<std::size_t, kCellsPerSector + 1> begin;
    group_by_cell(points, begin);
    row_.accepted += points.size();
    const Sector sector{row_.sector_x, row_.sector_y};
    for (std::size_t c = 0; c < kCellsPerSector; ++c) {
        cancel.check();
        sort_in_column(std::span(points).subspan(begin[c], begin[c + 1] - begin[c]),
                       static_cast<std::int32_t>(c / kCellsPerSide) << kCellShift);
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
                              .passed = 0,
                              .checksum = checksum_points(part, PointLayout::with_time)});
            hasher_.number(static_cast<std::uint32_t>(c)).bytes(std::as_bytes(part));
            row_.points += part.size();
            for (const TilePoint& p : part)
                if (is_witness(p, sector)) rays_.push_back(ray_of(p));
        }
    }
}

void SegmentEncoder::add_rays() {
    if (rays_.empty()) return;
    sort_by_slot(rays_);
    const Sector sector{row_.sector_x, row_.sector_y};
    for (std::span<const Ray> left(rays_); !left.empty();) {
        const auto part = left.first(std::min(left.size(), kRaysPerSpan));
        left = left.subspan(part.size());
        LatticeBox passed = box_of(part.front(), sector);
        for (const Ray& ray : part) {
            const LatticeBox b = box_of(ray, sector);
            passed = {std::min(passed.min_x, b.min_x), std::min(passed.min_y, b.min_y),
                      std::max(passed.max_x, b.max_x), std::max(passed.max_y, b.max_y)};
        }
        row_.reach.add(sectors_of(passed));
        const std::size_t at = data_.size();
        encode_rays(part, data_);
        table_.push_back({.cell = kRayCell,
                          .points = static_cast<std::uint32_t>(part.size()),
                          .bytes = static_cast<std::uint32_t>(data_.size() - at),
                          .passed = std::bit_cast<std::uint32_t>(PassedCells::of(passed, sector)),
                          .checksum = checksum_bytes(std::as_bytes(part))});
    }
}

EncodedSegment SegmentEncoder::finish() {
    add_rays();
    EncodedSegment segment{row_, {}, std::move(data_)};
    const auto table = std::as_bytes(std::span(table_));
    put(segment.table, SegmentHeader{static_cast<std::uint32_t>(table_.size()), PointLayout::with_rays,
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
        if (!is_possible(directory.segments.back())) damaged("has numbers that no archive has");
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

SegmentTable read_table(const File& file, const SegmentRow& segment, const std::string& what) {
    const auto damaged = [&] {
        throw CorruptionError(
            what + ": the table of cells at byte " + std::to_string(segment.offset) + " of " +
            file.path().string() +
            " is damaged; citysplat verify --deep --set-aside, then citysplat build read the input again");
    };
    SegmentHeader header{};
    const auto header_bytes = std::as_writable_bytes(std::span(&header, 1));
    // A catalog that is not ours must not make us take memory: the file is at least as long.
    if (segment.bytes < sizeof header || segment.bytes > file.size() ||
        file.read_some_at(segment.offset, header_bytes) != sizeof header ||
        header.spans > (segment.bytes - sizeof header) / sizeof(SpanEntry) ||
        header.layout > PointLayout::with_rays)
        damaged();
    std::vector<SpanEntry> spans(header.spans);
    const auto span_bytes = std::as_writable_bytes(std::span(spans));
    if (file.read_some_at(segment.offset + sizeof header, span_bytes) != span_bytes.size() ||
        checksum_bytes(span_bytes) != header.checksum)
        damaged();
    SegmentTable table;
    table.has_rays = header.layout == PointLayout::with_rays;
    std::uint64_t at = segment.offset + sizeof header + span_bytes.size();
    for (const SpanEntry& e : spans) {
        const bool rays = table.has_rays && e.cell == kRayCell;
        if ((e.cell >= kCellsPerSector && !rays) || at + e.bytes > segment.offset + segment.bytes) damaged();
        if (rays) {
            const auto passed = std::bit_cast<PassedCells>(e.passed);
            table.rays.push_back(
                {passed.box({segment.sector_x, segment.sector_y}), e.points, at, e.bytes, e.checksum});
        } else {
            table.cells.push_back(
                {static_cast<int>(e.cell), e.points, at, e.bytes, e.checksum, header.layout});
        }
        at += e.bytes;
    }
    return table;
}

namespace {

[[noreturn]] void throw_damaged(const std::string& what, const char* part, std::uint64_t offset) {
    throw CorruptionError(
        what + ": the " + part + " at byte " + std::to_string(offset) +
        " are damaged; citysplat verify --deep --set-aside, then citysplat build read the input again");
}

}  // namespace

void decode_cell(std::span<const std::byte> bytes, const CellSpan& cell, std::vector<TilePoint>& out,
                 const std::string& what) {
    const std::size_t at = out.size();
    if (!decode_points({bytes, cell.points, cell.cell, cell.layout}, out) ||
        checksum_points(std::span(out).subspan(at), cell.layout) != cell.checksum)
        throw_damaged(what, "points", cell.offset);
}

void decode_span(std::span<const std::byte> bytes, const RaySpan& span, std::vector<Ray>& out,
                 const std::string& what) {
    const std::size_t at = out.size();
    if (!decode_rays(bytes, span.rays, out) ||
        checksum_bytes(std::as_bytes(std::span(out).subspan(at))) != span.checksum)
        throw_damaged(what, "rays", span.offset);
}

}  // namespace citysplat::tiling
