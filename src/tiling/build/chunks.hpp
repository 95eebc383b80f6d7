#pragma once

#include "tiling/build/plan_record.hpp"

#include <chrono>

namespace citysplat::tiling {

/// What was touched within this time may be of a worker that is alive.
inline constexpr std::chrono::hours kLivingWorker{1};

/// What a build is asked for, in words: the same for every process of an array of jobs. The state of the
/// files is not part of it.
Hash128 request_of(const BuildOptions& options);

/// Orders the planned tiles and divides them into chunks of up to half a minute of a core, neighbours
/// together (their halos are read once from the disk), dear chunks first.
void divide_into_chunks(PlanRecord& plan);

/// True when both describe the same generation, so that what was done for one is done for the other.
bool same_work(const PlanRecord& a, const PlanRecord& b);

}  // namespace citysplat::tiling
