#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::test {

struct Outcome {
    int exit_code = -1;  ///< 128 + signal when killed
    std::string out, err;
    std::uint64_t peak_rss_bytes = 0;  ///< as the system counted it
};

/// Runs a program to its end with stdin closed and both outputs captured.
Outcome run_program(const std::vector<std::string>& command);

/// Path of the citysplat program of this build.
std::string program();

/// The citysplat program of this build with these arguments.
Outcome citysplat(std::vector<std::string> arguments);

/// Starts citysplat, sends it `signal` once that file is there, and waits for its end.
Outcome citysplat_with_signal(std::vector<std::string> arguments, int signal,
                              const std::filesystem::path& once_exists);

}  // namespace citysplat::test
