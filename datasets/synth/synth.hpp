#pragma once

#include "core/cancel.hpp"
#include "core/math/vec_hd.hpp"
#include "core/progress.hpp"
#include "datasets/synth/drive.hpp"
#include "datasets/synth/survey.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// The synthetic drive as files: clouds, trajectory and truth.json (docs/synthetic-city.md).
namespace citysplat::synth {

/// Changes whenever the same parameters give another city or another survey.
inline constexpr int kCityVersion = 2;

enum class CloudFormat { las, ply };

struct SynthOptions {
    std::uint64_t seed = 1;
    double length_m = 200;            ///< of the drive
    double points_per_metre = 50000;  ///< of the drive, on average
    double noise_m = 0.012;           ///< standard deviation of ranges
    double localisation_m = 0.012;    ///< standard deviation of the recorded position, per axis
    double range_m = 70;              ///< of the scanners
    bool mixed_pixels = true;
    bool outliers = true;
    bool actors = false;   ///< also what moves, as meshes with tracks and a scenario
    bool profile = false;  ///< a second, one-beam scanner, with clouds of its own
    CloudFormat format = CloudFormat::las;
    int files = 0;                        ///< per scanner; 0: at least two, about ten million points each
    Vec3d origin_m{651000, 6861000, 35};  ///< of the city in the world

    /// Throws UsageError naming the option.
    void validate() const;
};

struct CloudFile {
    std::string name;  ///< relative to the directory
    std::uint64_t points = 0;
};

/// One scanner's part of the survey.
struct ScannerRecord {
    std::string name, trajectory, sensor;
    double columns_per_s = 0;
    std::vector<CloudFile> files;
};

/// All that truth.json says: enough to make city, drive and survey again.
struct TruthFile {
    SynthOptions options;
    std::uint64_t points = 0;
    std::vector<ScannerRecord> scanners;

    /// Throws InputError, or ConfigError when another version of the city wrote it.
    static TruthFile read(const std::filesystem::path& path);
    void write(const std::filesystem::path& path) const;
    DriveParams drive_params() const;
    SurveyParams survey_params(double columns_per_s) const;
    Scanner scanner() const;          ///< the main one
    Scanner profile_scanner() const;  ///< the optional one
};

/// Is there a complete drive, with truth.json?
bool holds_drive(const std::filesystem::path& directory);

/// Writes the drive into `directory` (made if missing; an earlier drive there is replaced, anything else is
/// refused). truth.json comes last: without it the drive is incomplete. The bytes depend on `options` alone.
TruthFile write_drive(const std::filesystem::path& directory, const SynthOptions& options, Progress& progress,
                      const CancelToken& cancel);

/// Columns per second at which a survey returns about `points` points, from a sparse trial survey; a whole
/// number a turn.
double calibrate_columns_per_s(const Drive& drive, const Actors& actors, const Scanner& scanner,
                               double points, BlockCache& cache);

}  // namespace citysplat::synth
