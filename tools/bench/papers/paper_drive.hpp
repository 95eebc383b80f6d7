#pragma once

#include "bench/point_store.hpp"
#include "datasets/synth/truth.hpp"
#include "model/class_map.hpp"
#include "model/trajectory.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace citysplat::bench {

/// A drive in memory: one that citysplat synth made, with its truth, or a real one.
struct PaperDrive {
    ClassMap classes;
    Trajectory trajectory;  ///< of the sensor
    PointStore store;
    std::optional<synth::Truth> truth;  ///< of a drive that citysplat synth made
};

/// What a user says about a drive that is not from citysplat synth.
struct DriveWords {
    std::string inputs;      ///< what `citysplat build` takes: a folder, a pattern or @list
    std::string trajectory;  ///< a file; empty: that of the drive, as `citysplat info` understands it
    std::string classes;     ///< a class map; empty: points have no classes
};

/// Throws InputError when nobody knows where the sensor was.
PaperDrive open_paper_drive(const DriveWords& words);
/// Makes a drive in this directory and opens it.
PaperDrive make_paper_drive(const std::filesystem::path& directory, const synth::SynthOptions& options);

}  // namespace citysplat::bench
