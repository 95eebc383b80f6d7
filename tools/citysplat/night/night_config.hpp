#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::cli {

/// One city's file for `nightly`. Every key stands for a flag of the verb that does the step; the flags of
/// each step are made here, so that a person can run the step alone.
struct NightConfig {
    struct Drive {
        std::vector<std::string> inputs;  ///< paths and patterns
        std::string trajectory;           ///< empty: none
    };

    std::string city;
    std::vector<Drive> drives;        ///< the first are the inputs without a drive of their own
    std::vector<std::string> common;  ///< --memory, --threads: for every step
    std::vector<std::string> plan;    ///< flags without the inputs
    std::vector<std::string> work, publish, gc, diff;
    bool gc_wanted = false, surfaces = false;
    double wait_lock_s = 0;

    std::filesystem::path report_directory;
    std::uint64_t pictures = 0;  ///< pairs, of the most changed places
    std::filesystem::path prometheus, junit;
    std::vector<std::string> after;

    /// Throws ConfigError with the file and line of what is wrong; unknown keys are.
    static NightConfig load(const std::filesystem::path& path);
};

}  // namespace citysplat::cli
