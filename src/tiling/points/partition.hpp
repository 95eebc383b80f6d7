#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "io/point_file.hpp"
#include "model/trajectory.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::tiling {

using OpenPointFile =
    std::function<std::unique_ptr<PointFile>(const std::filesystem::path&, const std::string& reading)>;

using LoadTrajectory = std::function<Trajectory(const std::filesystem::path&, const std::string& reading)>;

/// A trajectory with the hash of its times and positions: it is part of what a source is.
struct SourceTrajectory {
    explicit SourceTrajectory(Trajectory trajectory);
    Trajectory path;
    Hash128 hash;
};

/// Throws IoError.
FileStamp stamp_of(const std::filesystem::path& path);
/// Identity of the source that a file with these bytes becomes.
Hash128 source_identity(const Hash128& content, const SourceTrajectory* trajectory,
                        const std::string& reading);

/// An input opened for reading, with what the system said about it before that.
struct OpenedInput {
    OpenedInput(const std::filesystem::path& path, const OpenPointFile& open, const std::string& reading);
    /// Throws BusyError when the file is not what it was.
    void check_unchanged() const;

    std::filesystem::path path;
    std::string reading;
    FileStamp stamp;
    std::unique_ptr<PointFile> file;
};

struct Partitioned {
    CitySource source;
    std::uint64_t spilled_bytes = 0;
    SensorMask::Counts masked{};  ///< points that were not even counted as read
};

struct PartitionTask {
    const OpenedInput& input;
    const SourceTrajectory* trajectory;  ///< nullptr: none
    std::uint64_t memory_bytes;
};

/// Reads one input in one pass, in parallel, under `memory_bytes`, and writes its archive into the store
/// (durable after flush). The bytes are hashed in the same pass. Throws BusyError when the file changed while
/// it was read: nothing of it must be used. Several inputs may be read at a time.
Partitioned partition(const PartitionTask& task, ObjectStore& store, const CancelToken& cancel,
                      Progress::Stage& progress);

}  // namespace citysplat::tiling
