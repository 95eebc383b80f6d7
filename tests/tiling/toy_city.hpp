#pragma once

#include "temp_dir.hpp"
#include "tiling/build/builder.hpp"
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

}  // namespace citysplat::test
