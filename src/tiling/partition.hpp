#pragma once

#include "core/cancel.hpp"
#include "core/formats/point_file.hpp"
#include "core/progress.hpp"
#include "core/trajectory.hpp"
#include "tiling/catalog.hpp"
#include "tiling/object_store.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

namespace citysplat::tiling {

using OpenPointFile = std::function<std::unique_ptr<PointFile>(const std::filesystem::path&)>;

using LoadTrajectory = std::function<Trajectory(const std::filesystem::path&)>;

/// A trajectory with the hash of its times and positions: it is part of what a source is.
struct SourceTrajectory {
    explicit SourceTrajectory(Trajectory trajectory);
    Trajectory path;
    Hash128 hash;
};

/// Size, time and inode of a file. Throws IoError.
FileStamp stamp_of(const std::filesystem::path& path);
/// Hash of all bytes of a file.
Hash128 hash_file(const std::filesystem::path& path, const CancelToken& cancel);
/// Identity of the source that a file with these bytes becomes.
Hash128 source_identity(const Hash128& content, const SourceTrajectory* trajectory);

struct Partitioned {
    SourceRow source;
    std::vector<SegmentRow> segments;
    std::uint64_t spilled_bytes = 0;
};

/// Reads one input in one pass, in parallel, under `memory_bytes`, and writes its archive into the store
/// (durable after flush). The bytes are hashed in the same pass. Throws BusyError when the file changed while
/// it was read: nothing of it must be used.
Partitioned partition(const std::filesystem::path& path, const PointFile& file,
                      const SourceTrajectory* trajectory, ObjectStore& store, std::uint64_t memory_bytes,
                      const CancelToken& cancel, Progress::Stage& progress);

}  // namespace citysplat::tiling
