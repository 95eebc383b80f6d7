#pragma once

#include "tiling/build/build_inputs.hpp"
#include "tiling/build/build_options.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
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

/// The parameters' key of a generation that has older tiles than its inputs, where new ones could not be made
/// of the same parameters. No build has it, so that the next one holds every tile against its points.
Hash128 key_with_old_tiles(const Hash128& parameters_key);

struct GateAnswer {
    std::vector<GateResult> results;       ///< of the gates about two generations
    std::optional<std::string> objection;  ///< all that speaks against it
};
/// What gates say about it. Those about two generations are not asked when it is the first.
/// They are about splats: throws UsageError when the city has none.
GateAnswer ask_gates(const OpenCity& city, const NextGeneration& next, const Gates& gates,
                     std::uint64_t tiles_failed);

struct PublishOptions {
    Gate gate;
    std::vector<CandidateGate> gates;  ///< asked when there is a generation before
    /// The plan that a person looked at and lets through: its name, or at least eight digits of it. No gate
    /// is asked. Throws UsageError when another plan is open, or none.
    std::string accept;
    /// Take the tile of the latest generation where all workers failed to make a new one. Said in the report.
    bool keep_old_for_failed = false;
};

struct PublishReport {
    std::int64_t generation = 0;
    bool published = false;  ///< false: nothing has changed
    std::uint64_t tiles = 0, splats = 0, triangles = 0;
    Hash128 digest;
    std::vector<TileFailure> kept_old;
    std::vector<GateResult> gates;         ///< what they measured
    std::optional<std::string> held_back;  ///< what they said: the plan stays open and nothing was published
    Hash128 plan;                          ///< that was published or held back
};

/// Makes a generation of what the workers of the open plan have made, and closes the plan. When nothing is
/// planned, or what was planned is what the city has, there is no new generation. Throws BusyError while
/// tiles are missing, ConfigError when the city has moved on since the plan was made (the next plan uses what
/// was made), an Error that names the tiles which could not be made, UsageError when the plan was made
/// without a gate about findings and there is one now.
PublishReport publish_plan(const std::filesystem::path& city, const PublishOptions& options = {});

}  // namespace citysplat::tiling
