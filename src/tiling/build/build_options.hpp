#pragma once

#include "core/words.hpp"
#include "io/input/reading.hpp"
#include "model/tile_grid.hpp"
#include "tiling/build/gate.hpp"
#include "tiling/points/partition.hpp"
#include "tiling/store/catalog.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::tiling {

/// Chosen by measurement (docs/adr/0201).
inline constexpr std::int64_t kDefaultTileSize_m = 64;

struct BuildInput {
    std::filesystem::path path;
    std::filesystem::path trajectory;  ///< empty: none, or the one the city already has for this input
    /// How both are to be read, in the words of io/input/reading.hpp. Part of what the
    /// source is, and kept in the catalog for the nights when the input is not mentioned.
    std::string reading{};
};

/// Number `index` of `count` processes (from 1) that share a build.
struct Shard {
    std::uint32_t index = 1, count = 1;
};

struct BuildOptions {
    // What the city is made of.
    std::vector<BuildInput> inputs;             ///< added to those the city has, or changed
    std::vector<std::filesystem::path> remove;  ///< inputs to forget
    bool recalibrate = false;                   ///< measure the city-wide means again and use them
    bool measure_drift = false;                 ///< measure them, for `status`
    bool carve = false;                         ///< leave out what rays saw through (carve/free_space.hpp)
    std::string parameters;                     ///< for people: what the processor was told, as JSON
    std::string classes;                        ///< the class map, for readers, as TOML
    std::string note = "build";                 ///< what people say about the generation
    Gate gate;                                  ///< measures what the city has not measured as it is
    std::vector<CandidateGate> gates;           ///< asked when there is a generation before
    /// The inputs are all that the city is to be made of: it forgets others that it has. Throws ConfigError,
    /// before anything changes, when these are more than this share of what it has: a disk that is not
    /// mounted must not empty a city. Inputs whose content is still there under another name do not count.
    std::optional<double> exactly_but;

    // How the work is done. Nothing here changes a splat.
    std::int64_t tile_size_m = 0;  ///< 0: the city's own, or the default for a new one
    std::uint64_t memory_bytes = std::uint64_t{4} << 30;
    /// Throw UsageError, with the least that is enough, when a tile that cannot be split any more would need
    /// more than `memory_bytes`. Otherwise it is made all the same, alone.
    bool refuse_small_memory = false;
    int threads = 1;
    bool dry_run = false;
    bool keep_going = false;                                     ///< finish the other tiles when one fails
    std::optional<std::chrono::steady_clock::time_point> until;  ///< begin no tile after this
    std::optional<std::uint64_t> most_tile_points;  ///< split tiles above this, whatever the memory
    OpenPointFile open = io::ReadingOpener();
    LoadTrajectory load_trajectory = io::trajectory_by_reading;
    /// What `reading` of an input that is not mentioned has become, where it speaks of files that can change.
    std::function<std::string(const std::string& reading)> refresh = io::refreshed_reading;
};

/// Why a tile was looked at again, in the words of --explain.
enum class Reason {
    new_tile,        ///< no tile was here
    changed_core,    ///< points of the core changed
    changed_halo,    ///< points around the core changed
    parameters,      ///< other parameters, class map or calibration
    algorithm,       ///< same parameters, newer algorithm
    missing_object,  ///< the payload is gone or has the wrong size
    split,           ///< the grid here is now finer or coarser
    new_product      ///< the city had nothing of this kind
};
inline constexpr Words<Reason, 8> kReasons{{"new source", "changed core", "changed halo", "parameters",
                                            "algorithm version", "missing object", "other grid",
                                            "new product"}};
inline const char* text_of(Reason reason) { return kReasons.of(reason); }

struct Explanation {
    TileKey tile;
    Reason reason;
};

struct TileFailure {
    TileKey tile;
    std::string message;
};

struct BuildReport {
    std::int64_t generation = 0;
    bool published = false;  ///< false: there was nothing to do, or it was a dry run
    PointCounts points;      ///< sums over the sources in the city
    std::string crs;         ///< of the city; empty when no input says
    std::uint64_t far_outliers = 0;
    SensorMask::Counts masked{};  ///< points of the inputs of this run that a mask left out
    std::uint64_t removed = 0;    ///< points left out because rays saw through them
    std::uint64_t inputs = 0, inputs_read = 0, inputs_hashed = 0;
    std::uint64_t tiles_total = 0, tiles_built = 0, tiles_reused = 0, tiles_empty = 0, tiles_checked = 0;
    std::uint64_t halo_widened = 0;  ///< tiles that needed more than the usual halo
    std::uint64_t splats = 0, triangles = 0;
    Hash128 digest;
    Calibration calibration;
    std::string findings;                       ///< of the generation, measured now or before
    std::int64_t findings_of = 0;               ///< the generation whose points they are about
    std::vector<GateResult> gates;              ///< what they measured
    std::optional<std::string> held_back;       ///< what gates said: all was built and nothing published
    std::vector<std::string> inputs_forgotten;  ///< because they are not among those that are all
    std::vector<Explanation> explanations;      ///< of the built tiles, sorted
    std::vector<TileFailure> failures;
    std::vector<TileKey> tiles_not_begun;  ///< because the time was up
    std::vector<std::string> warnings;
    double partition_s = 0, calibrate_s = 0, plan_s = 0, tiles_s = 0, publish_s = 0;

    // Predictions, also without --dry-run.
    std::uint64_t predicted_disk_bytes = 0;    ///< archives, temporary files and payloads still to be written
    std::uint64_t predicted_memory_bytes = 0;  ///< of the largest tile
    std::uint64_t spilled_bytes = 0;
};

}  // namespace citysplat::tiling
