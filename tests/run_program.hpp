#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::test {

struct Outcome {
    int exit_code = -1;  ///< 128 + signal when killed
    std::string out, err;
    std::uint64_t peak_rss_bytes = 0;  ///< as the system counted it
    double seconds = 0;                ///< until it ended: since its signal, if it was sent one, else in all
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
/// The same after a while.
Outcome citysplat_with_signal(std::vector<std::string> arguments, int signal,
                              std::chrono::milliseconds after);

}  // namespace citysplat::test
