#pragma once

#include "core/cancel.hpp"
#include "model/point.hpp"
#include "tiling/points/point_codec.hpp"
#include "tiling/sector.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// The archive of one source: one object with all its points, sector by sector (docs/formats.md).
///
///   header     64 bytes: magic, version, identity of the source
///   segments   one per sector, in the order of Sector
///   directory  56 bytes per segment, then what the source was (for `repair`)
///   trailer    64 bytes: where the directory is, and its checksum
///
/// A segment is a table followed by what it lists: the points, each cell compressed on its own, so that the
/// halo of a tile reads only the cells it touches; then the rays of its witnesses (ray.hpp) once more, in the
/// order of their time, some thousand at a time and with the cells they pass: a tile asks the rays of many
/// sectors, and would otherwise decode all their points for a quarter of them. One object per source rather
/// than one per source × tile: a drive of 300 files and 5 000 tiles is 300 files and 300 fsyncs, written
/// front to back.
namespace citysplat::tiling {

/// A segment ready to be written.
struct EncodedSegment {
    SegmentRow row;                       ///< without its offset
    std::vector<std::byte> table, cells;  ///< one after the other: the segment
};

/// Sorts the points of a sector canonically, collapses identical ones, and encodes them. Coordinates count
/// from the sector's origin, z from 0.
class SegmentEncoder {
  public:
    explicit SegmentEncoder(const Sector& sector);
    /// Adds all points of some cells, which come after the cells added before: a sector too large for memory
    /// is encoded in parts. Reorders `points`.
    void add(std::vector<TilePoint>& points, const CancelToken& cancel);
    EncodedSegment finish();

    /// Working memory of add(), the points themselves included.
    static constexpr std::size_t kBytesPerPoint = 2 * sizeof(TilePoint) + 34;

  private:
    struct Span {
        std::uint32_t cell, points, bytes, passed;
        std::uint64_t checksum;
    };
    void add_rays();
    SegmentRow row_;
    std::vector<Span> table_;
    std::vector<Ray> rays_;
    std::vector<std::byte> data_;
    Hasher hasher_;
};

class ArchiveWriter {
  public:
    ArchiveWriter(ObjectStore& store, const Hash128& identity);
    void append(EncodedSegment segment);
    /// Completes the archive; `source` gets its object. The object is durable after the store's flush().
    void finish(SourceRow& source);
    const std::vector<SegmentRow>& segments() const { return segments_; }

  private:
    ObjectStore::Writer writer_;
    std::vector<SegmentRow> segments_;
};

/// What the directory of an archive says, for `repair`. Throws CorruptionError.
bool is_archive(const File& file);
CitySource read_directory(const File& file, const Hash128& object);

/// One cell of a segment on disk.
struct CellSpan {
    int cell = 0;
    std::uint32_t points = 0;
    std::uint64_t offset = 0;  ///< within the archive
    std::uint32_t bytes = 0;
    std::uint64_t checksum = 0;  ///< of the decoded points
    PointLayout layout = PointLayout::with_time;
};

/// Rays of a segment on disk.
struct RaySpan {
    LatticeBox passed;  ///< world steps: where they may have passed
    std::uint32_t rays = 0;
    std::uint64_t offset = 0;  ///< within the archive
    std::uint32_t bytes = 0;
    std::uint64_t checksum = 0;  ///< of the decoded rays
};

/// What a segment holds, in order.
struct SegmentTable {
    std::vector<CellSpan> cells;
    std::vector<RaySpan> rays;
    bool has_rays = false;  ///< false: written before version 4; its rays are to be found among its points
};

/// Throws CorruptionError naming `what`.
SegmentTable read_table(const File& file, const SegmentRow& segment, const std::string& what);

/// Decodes one cell and appends its points (steps from the sector's origin). Throws CorruptionError.
void decode_cell(std::span<const std::byte> bytes, const CellSpan& cell, std::vector<TilePoint>& out,
                 const std::string& what);
/// The same for rays.
void decode_span(std::span<const std::byte> bytes, const RaySpan& span, std::vector<Ray>& out,
                 const std::string& what);

}  // namespace citysplat::tiling
