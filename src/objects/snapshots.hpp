#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/class_map.hpp"
#include "objects/scan_inputs.hpp"
#include "objects/splat_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::objects {

/// What moved, scan by scan: the points of dynamic classes of one scan as splats that exist while it lasts. A
/// city has no splats of them (AdaSplats §3.2); in its §6.3.4 they are tagged with frames. Here each scan has
/// a payload of its own, so that no hierarchy ever holds two of them and nothing leaves a trail.
struct Snapshot {
    double begin_s = 0, end_s = 0;  ///< it exists for rays of [begin, end)
    std::string source;             ///< the file it comes from
    std::uint64_t points = 0;
    /// What Splat::instance counts: number i + 1 is objects[i], (instance << 16 | label) of the source,
    /// increasing. Empty when the source tells no instances.
    std::vector<std::uint32_t> objects;
    StoredSplats splats;
};

/// The snapshots of a folder (docs/formats.md): snapshots.json and splats/HASH.splats. Only the index is in
/// memory.
class Snapshots {
  public:
    /// Throws ConfigError when there are none, CorruptionError when the index is damaged.
    static Snapshots open(const std::filesystem::path& folder);
    /// Where the snapshots of a city are.
    static std::filesystem::path folder_of(const std::filesystem::path& city) { return city / "snapshots"; }

    std::span<const Snapshot> frames() const { return frames_; }  ///< by begin
    /// Those that exist at a time of [begin, end], as places in frames().
    std::vector<std::size_t> during(double begin_s, double end_s) const;
    SplatTile load(const Snapshot& frame) const;

  private:
    std::filesystem::path folder_;
    std::vector<Snapshot> frames_;
    double longest_s_ = 0;
};

struct SnapshotOptions {
    /// Labels whose points are taken. Usually the dynamic classes of the city.
    std::set<std::uint16_t> labels;
    double period_s = 0.1;        ///< of the slots of files that are not one sweep
    double most_radius_m = 0.14;  ///< of a disc; AdaSplats' own
    double least_radius_m = 0.01;

    void validate() const;  ///< throws UsageError
};

struct SnapshotReport {
    std::size_t frames = 0;                ///< made
    std::uint64_t points = 0, splats = 0;  ///< of them
    std::uint64_t without_sensor = 0;      ///< points left out: nobody knows from where they were seen
    std::uint64_t objects_uncounted = 0;   ///< beyond the 255 that a frame can number: their splats have 0
};

/// Makes snapshots of the scans: one for each sweep, or for each slot of time of a longer file. Frames of
/// other files stay in the index, those of the same files are replaced. In memory are the dynamic points of
/// as many files as there are threads, and where these are sweeps all of their rays. The same bytes for any
/// number of threads and order of files.
SnapshotReport make_snapshots(const std::filesystem::path& folder, const ScanInputs& scans,
                              const SnapshotOptions& options, const CancelToken& cancel, Progress& progress);

std::string snapshot_index_text(std::span<const Snapshot> frames);
std::vector<Snapshot> parse_snapshot_index(std::string_view text, const std::string& origin);

}  // namespace citysplat::objects
