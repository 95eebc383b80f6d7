#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/build/build_options.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/tile_processor.hpp"

#include <filesystem>
#include <optional>

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

struct PlanReport {
    BuildReport build;             ///< of reading the inputs; nothing when an open plan was joined
    std::optional<OpenPlan> open;  ///< nothing: there is nothing to do
    bool joined = false;           ///< it was open before
};

/// The first third of a build: reads the inputs, calibrates, and opens a plan for workers (worker.hpp) and
/// `publish` (publisher.hpp). What workers of an earlier plan have finished is used again. Nothing is opened
/// when the city is up to date.
PlanReport plan_city(const std::filesystem::path& city, TileProcessor& processor, const BuildOptions& options,
                     const CancelToken& cancel, Progress& progress);

/// For arrays of equal commands: joins the open plan when it was made for the same request, whatever has
/// happened to the files since, else plans. One process plans while the others wait.
PlanReport join_or_plan(const std::filesystem::path& city, TileProcessor& processor,
                        const BuildOptions& options, const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::tiling
