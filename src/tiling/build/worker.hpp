#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/build/build_options.hpp"
#include "tiling/build/plan_record.hpp"
#include "tiling/tile_processor.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace citysplat::tiling {

struct WorkOptions {
    std::uint64_t memory_bytes = std::uint64_t{4} << 30;
    bool refuse_small_memory = false;  ///< as in BuildOptions
    int threads = 1;
    std::optional<Shard> begin_with;                             ///< a hint: the chunks to look at first
    std::optional<std::chrono::steady_clock::time_point> until;  ///< begin no tile after this

    // When others are taken for dead or slow. Wrong guesses cost time and nothing else.
    std::chrono::milliseconds heartbeat{20'000};  ///< how often a claim is touched
    std::chrono::milliseconds dead_after{120'000};
    /// A chunk from which nothing came for so long is made by somebody idle, too.
    std::chrono::milliseconds slow_after{20'000};
};

struct WorkReport {
    std::optional<Hash128> plan;        ///< nothing: no plan is open
    std::uint64_t tiles_planned = 0;    ///< of the whole plan
    std::uint64_t tiles_left = 0;       ///< of the whole plan, when this worker ended
    std::uint64_t chunks = 0;           ///< that this worker took
    std::uint64_t chunks_repeated = 0;  ///< of these, beside somebody else
    BuildReport made;                   ///< what this worker did
    bool superseded = false;            ///< another plan was opened meanwhile
};

/// Makes the processor of a plan from what the generation to be remembers.
using MakeProcessor = std::function<std::unique_ptr<TileProcessor>(const GenerationRow&)>;

/// Takes tiles of the open plan until none is left, or the time is up: any number of processes on any number
/// of hosts, at any time. Needs the plan and the objects: neither the catalog, nor the inputs, nor a lock.
/// What is finished is kept whatever happens to the process. Tiles that fail are left to other hosts, twice
/// at most, and listed. Throws ConfigError when this program does not make the tiles of the plan (another
/// version of the algorithm), UsageError when a tile needs more memory than there is.
WorkReport work_on_plan(const std::filesystem::path& city, const MakeProcessor& make_processor,
                        const WorkOptions& options, const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::tiling
