#pragma once

#include "tiling/build/build_options.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace citysplat::tiling {

/// A generation that may be published.
struct NextGeneration {
    const GenerationRow& row;
    const std::vector<InputRow>& inputs;
    const std::vector<ProductRow>& tiles;
};

/// Whether it says anything else than the latest one. A touched file makes no difference; a renamed one does,
/// because the inputs are part of a generation.
bool differs(Catalog& catalog, const GenerationRow& latest, const NextGeneration& next);

struct PublishOptions {
    Gate gate;
    /// Take the tile of the latest generation where all workers failed to make a new one. Said in the report.
    bool keep_old_for_failed = false;
};

struct PublishReport {
    std::int64_t generation = 0;
    bool published = false;  ///< false: nothing has changed
    std::uint64_t tiles = 0, splats = 0;
    Hash128 digest;
    std::vector<TileFailure> kept_old;
};

/// Makes a generation of what the workers of the open plan have made, and closes the plan. When nothing is
/// planned, or what was planned is what the city has, there is no new generation. Throws BusyError while
/// tiles are missing, ConfigError when the city has moved on since the plan was made (the next plan uses what
/// was made), an Error that names the tiles which could not be made, HeldBackError when the gate objects
/// (then everything stays as it is, to be published without it), UsageError when the plan was made without
/// one.
PublishReport publish_plan(const std::filesystem::path& city, const PublishOptions& options = {});

}  // namespace citysplat::tiling
