#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/build/build_options.hpp"
#include "tiling/tile_processor.hpp"

#include <filesystem>

namespace citysplat::tiling {

/// Creates or updates the city in a directory, and publishes a new generation when anything changed:
///
///   inputs → sources (point archives) → calibration → plan → tiles → publish
///
/// Whatever was finished before a failure, a kill or a cancellation is kept and not done again. Throws
/// BusyError when somebody else builds. With `keep_going`, failed tiles are in the report and nothing is
/// published. Nor is it when the gate objects, though all is built and kept: the same build without a gate
/// publishes it.
BuildReport build_city(const std::filesystem::path& city, TileProcessor& processor,
                       const BuildOptions& options, const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::tiling
