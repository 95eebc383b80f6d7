#pragma once

#include "tiling/build/builder.hpp"
#include "tiling/build/worker.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace citysplat::cli {

class Context;

/// "K/N", or "auto" for the index that a scheduler of job arrays gives to its processes: Slurm, Kubernetes,
/// AWS Batch, SGE, LSF, PBS, counted from 0 or 1. Throws UsageError.
tiling::Shard parse_shard(const std::string& text);

/// "50m", "2h", "90s": seconds, at most a year. Nothing when it is something else.
std::optional<double> parse_duration(const std::string& text);

/// What a plan asks for, in a few lines and in the words of docs/cli.md.
std::string plan_text(const tiling::PlanReport& report);
nlohmann::json plan_json(const tiling::OpenPlan& open);

/// "7 splats", "7 triangles", "7 splats and 8 triangles" or "nothing".
std::string made_text(std::uint64_t splats, std::uint64_t triangles);

tiling::WorkOptions work_options(const Context& context);

/// Works on the open plan with the processor that it asks for, and gives the result to the user. Throws an
/// Error when tiles failed, BusyError when tiles are left because the time was up.
void do_work(Context& context, const std::string& city, const tiling::WorkOptions& options);

}  // namespace citysplat::cli
