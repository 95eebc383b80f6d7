#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/build/build_options.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <vector>

namespace citysplat::tiling {

/// A city that is being built, in the hands of one thread.
struct OpenCity {
    Catalog& catalog;
    ObjectStore& store;
};

/// Finds out what the inputs of the next generation are: those of the latest one, with what the options add
/// and remove, each file that may have changed read into a source. Sources are committed one by one, small
/// ones in batches, so that a killed build does not read much twice. Counts what it did in `report`.
std::vector<InputRow> resolve_inputs(const OpenCity& city, const BuildOptions& options, BuildReport& report,
                                     const CancelToken& cancel, Progress& progress);

/// Absolute, without dots and links where the file exists: the name under which the city knows an input.
std::string input_name(const std::filesystem::path& path);

}  // namespace citysplat::tiling
