#include "tiling/points/partition.hpp"

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"
#include "tiling/points/point_archive.hpp"
#include "tiling/points/point_rules.hpp"
#include "tiling/points/scatter.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <limits>
#include <sys/stat.h>
#include <unordered_map>

namespace citysplat::tiling {

namespace {

/// Part of the identity of a source: change it when the rules of point_rules.hpp change.
constexpr std::uint32_t kPartitionVersion = 2;
/// What reading takes beside the points: the program itself, blocks being decoded, hashed and compressed.
constexpr std::uint64_t kBesidePoints = std::uint64_t{48} << 20;

struct SectorHash {
    std::size_t operator()(const Sector& s) const {
        return static_cast<std::size_t>(s.x) * 0x9e3779b97f4a7c15ull + static_cast<std::size_t>(s.y);
    }
};

/// What one thread needs to bin blocks of points.
class Binner {
  public:
    Binner(const Trajectory* trajectory) : path_(trajectory) {
        constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();
        bounds = {kHuge, kHuge, -kHuge, -kHuge};
    }

    void bin(const PointFile& file, std::size_t block, Scatter& scatter) {
        file.read_block(block, batch_);
        counts.no_return += batch_.no_return;
        counts.damaged += batch_.damaged;
        counts.read += batch_.no_return + batch_.damaged;
        for (std::size_t i = 0; i < masked.size(); ++i) masked[i] += batch_.masked[i];
        const std::size_t n = batch_.size();
        points_.clear();
        bins_.clear();
        sizes_.clear();
        sectors_.clear();
        index_.clear();
        Sector last{};
        std::uint32_t last_bin = std::numeric_limits<std::uint32_t>::max();
        for (std::size_t i = 0; i < n; ++i) {
            auto sample = accept_point(batch_, i, path_, counts);
            if (!sample) continue;
            const Sector sector = sector_of(sample->x, sample->y);
            if (sectors_.empty() || sector != last) {
                last_bin = bin_of(sector);
                last = sector;
            }
            sample->point.x = static_cast<std::int32_t>(sample->x - sector.origin_x());
            sample->point.y = static_cast<std::int32_t>(sample->y - sector.origin_y());
            bounds.min_x = std::min(bounds.min_x, sample->x);
            bounds.min_y = std::min(bounds.min_y, sample->y);
            bounds.max_x = std::max(bounds.max_x, sample->x + 1);
            bounds.max_y = std::max(bounds.max_y, sample->y + 1);
            points_.push_back(sample->point);
            bins_.push_back(last_bin);
            ++sizes_[last_bin];
        }
        hand_over(scatter);
    }

    PointCounts counts;
    SensorMask::Counts masked{};
    LatticeBox bounds;

  private:
    std::uint32_t bin_of(const Sector& sector) {
        const auto [found, added] = index_.try_emplace(sector, static_cast<std::uint32_t>(sectors_.size()));
        if (added) {
            sectors_.push_back(sector);
            sizes_.push_back(0);
        }
        return found->second;
    }

    void hand_over(Scatter& scatter) {
        std::vector<std::vector<TilePoint>> chunks(sectors_.size());
        for (std::size_t b = 0; b < chunks.size(); ++b) chunks[b].reserve(sizes_[b]);
        for (std::size_t i = 0; i < points_.size(); ++i) chunks[bins_[i]].push_back(points_[i]);
        for (std::size_t b = 0; b < chunks.size(); ++b) scatter.add(sectors_[b], std::move(chunks[b]));
    }

    SensorPath path_;
    PointBatch batch_;
    std::vector<TilePoint> points_;
    std::vector<std::uint32_t> bins_;  ///< of each point
    std::vector<Sector> sectors_;      ///< of each bin
    std::vector<std::size_t> sizes_;
    std::unordered_map<Sector, std::uint32_t, SectorHash> index_;
};

EncodedSegment encode_sector(Scatter& scatter, const Sector& sector, std::uint64_t points,
                             std::uint64_t budget_bytes, const CancelToken& cancel) {
    // A sector that would not fit is read in as many passes over its own chunks as it takes.
    const std::uint64_t bytes = points * SegmentEncoder::kBytesPerPoint;
    const int passes = static_cast<int>(std::min<std::uint64_t>(
        kCellsPerSide, (bytes + budget_bytes - 1) / std::max<std::uint64_t>(1, budget_bytes)));
    SegmentEncoder encoder(sector);
    for (int pass = 0; pass < passes; ++pass) {
        auto part = scatter.take(sector, kCellsPerSide * pass / passes, kCellsPerSide * (pass + 1) / passes);
        encoder.add(part, cancel);
    }
    return encoder.finish();
}

/// Encodes the sectors in parallel, in waves that fit the budget, and writes them in order.
void write_archive(Scatter& scatter, ArchiveWriter& archive, std::uint64_t budget_bytes,
                   const CancelToken& cancel) {
    const auto sectors = scatter.sectors();
    constexpr std::size_t kMaxWave = 256;
    for (std::size_t begin = 0; begin < sectors.size();) {
        cancel.check();
        std::size_t end = begin;
        std::uint64_t bytes = 0;
        while (end < sectors.size() && end - begin < kMaxWave) {
            bytes += sectors[end].second * SegmentEncoder::kBytesPerPoint;
            if (end > begin && bytes > budget_bytes) break;
            ++end;
        }
        std::vector<EncodedSegment> wave(end - begin);
        parallel_for(wave.size(), [&](std::size_t i) {
            const auto& [sector, points] = sectors[begin + i];
            wave[i] = encode_sector(scatter, sector, points, budget_bytes, cancel);
        });
        for (EncodedSegment& segment : wave) archive.append(std::move(segment));
        begin = end;
    }
}

struct stat status_of(const std::filesystem::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw_errno("cannot read", path);
    return status;
}

FileStamp stamp_from(const struct stat& s) {
    const std::int64_t ctime_ns = s.st_ctim.tv_sec * 1'000'000'000 + s.st_ctim.tv_nsec;
    return {static_cast<std::uint64_t>(s.st_size), s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec,
            rng::key(static_cast<std::uint64_t>(s.st_ino), static_cast<std::uint64_t>(ctime_ns))};
}

}  // namespace

SourceTrajectory::SourceTrajectory(Trajectory trajectory) : path(std::move(trajectory)) {
    Hasher hasher;
    for (const StampedPose& pose : path.poses()) {
        const Vec3d& t = pose.world_from_body.translation;
        hasher.number(pose.time_s).number(t.x).number(t.y).number(t.z);
    }
    hash = hasher.finish();
}

FileStamp stamp_of(const std::filesystem::path& path) { return stamp_from(status_of(path)); }

OpenedInput::OpenedInput(const std::filesystem::path& input, const OpenPointFile& open,
                         const std::string& how)
    : path(input), reading(how) {
    const auto status = status_of(path);
    stamp = stamp_from(status);
    file = open(path, reading);
}

void OpenedInput::check_unchanged() const {
    const auto status = status_of(path);
    if (stamp_from(status) != stamp)
        throw BusyError(path.string() +
                        " changed while it was being read; nothing of it was used. Run the build again when "
                        "it is complete");
}

Hash128 source_identity(const Hash128& content, const SourceTrajectory* trajectory,
                        const std::string& reading) {
    return Hasher()
        .text("citysplat source")
        .number(kPartitionVersion)
        .hash(content)
        .hash(trajectory ? trajectory->hash : Hash128{})
        .text(reading)
        .finish();
}

Partitioned partition(const PartitionTask& task, ObjectStore& store, const CancelToken& cancel,
                      Progress::Stage& progress) {
    const OpenedInput& input = task.input;
    const SourceTrajectory* trajectory = task.trajectory;
    const std::uint64_t memory_bytes = task.memory_bytes;
    const PointFile& file = *input.file;
    const std::uint64_t for_points = memory_bytes - std::min(memory_bytes / 2, kBesidePoints);
    Scatter scatter(store.paths().new_temporary(), for_points / 100 * 45);
    tbb::enumerable_thread_specific<Binner> binners(trajectory ? &trajectory->path : nullptr);
    Partitioned result;
    SourceRow& source = result.source.row;
    parallel_invoke([&] { source.content = hash_file(input.path, cancel); },
                    [&] {
                        parallel_for(file.block_count(), [&](std::size_t block) {
                            cancel.check();
                            Binner& binner = binners.local();
                            const std::uint64_t read = binner.counts.read;
                            binner.bin(file, block, scatter);
                            progress.advance(binner.counts.read - read);
                        });
                    });
    input.check_unchanged();
    source.identity = source_identity(source.content, trajectory, input.reading);
    source.content_bytes = input.stamp.size;
    source.counts.damaged = file.info().points_lost;
    source.counts.read = file.info().points_lost;
    source.format = file.info().format;
    source.crs = file.info().crs;
    bool first = true;
    for (const Binner& binner : binners) {
        source.counts += binner.counts;
        for (std::size_t i = 0; i < binner.masked.size(); ++i) result.masked[i] += binner.masked[i];
        const LatticeBox& b = binner.bounds;
        if (b.min_x >= b.max_x) continue;
        LatticeBox& all = source.bounds;
        all = first ? b
                    : LatticeBox{std::min(all.min_x, b.min_x), std::min(all.min_y, b.min_y),
                                 std::max(all.max_x, b.max_x), std::max(all.max_y, b.max_y)};
        first = false;
    }
    ArchiveWriter archive(store, source.identity);
    write_archive(scatter, archive, for_points / 100 * 30, cancel);
    for (const SegmentRow& segment : archive.segments()) {
        source.counts.kept += segment.points;
        source.counts.duplicates += segment.accepted - segment.points;
    }
    archive.finish(source);
    result.source.segments = archive.segments();
    result.spilled_bytes = scatter.spilled_bytes();
    return result;
}

}  // namespace citysplat::tiling
