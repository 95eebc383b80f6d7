#pragma once

#include "temp_dir.hpp"
#include "tiling/build/builder.hpp"
#include "tiling/build/publisher.hpp"
#include "tiling/build/worker.hpp"
#include "tiling/toy_cloud.hpp"
#include "tiling/toy_processor.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::test {

/// Options as most tests want them.
inline tiling::BuildOptions toy_options(const std::vector<std::filesystem::path>& inputs = {}) {
    tiling::BuildOptions options;
    for (const auto& path : inputs) options.inputs.push_back({path, {}});
    options.open = [](const std::filesystem::path& path, const std::string&) { return open_cloud(path); };
    options.load_trajectory = [](const std::filesystem::path& path, const std::string&) {
        return Trajectory::read_tum(path);
    };
    options.tile_size_m = 16;
    options.threads = 2;
    options.parameters = "{}";
    return options;
}

inline tiling::BuildReport build_toy(const std::filesystem::path& city, const tiling::BuildOptions& options,
                                     double radius_m = 0.5) {
    ToyProcessor processor(radius_m);
    CancelToken cancel;
    Progress progress;
    return tiling::build_city(city, processor, options, cancel, progress);
}

inline tiling::PlanReport plan_toy(const std::filesystem::path& city, const tiling::BuildOptions& options) {
    ToyProcessor processor;
    CancelToken cancel;
    Progress progress;
    return tiling::plan_city(city, processor, options, cancel, progress);
}

/// For tests that leave claims behind: repeats at once what others seem to work on.
inline tiling::WorkOptions impatient() {
    tiling::WorkOptions options;
    options.slow_after = std::chrono::milliseconds(0);
    return options;
}

inline tiling::WorkReport work_toy(const std::filesystem::path& city,
                                   const tiling::WorkOptions& options = {}) {
    CancelToken cancel;
    Progress progress;
    return tiling::work_on_plan(
        city, [](const tiling::GenerationRow&) { return std::make_unique<ToyProcessor>(); }, options, cancel,
        progress);
}

/// What `build --shard` does.
inline tiling::WorkReport shard_toy(const std::filesystem::path& city, const tiling::BuildOptions& options,
                                    const tiling::Shard& shard) {
    ToyProcessor processor;
    CancelToken cancel;
    Progress progress;
    tiling::join_or_plan(city, processor, options, cancel, progress);
    tiling::WorkOptions work;
    work.begin_with = shard;
    return work_toy(city, work);
}

}  // namespace citysplat::test
