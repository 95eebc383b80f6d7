#pragma once

#include "run_program.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::test {

/// How a program ended, and how long after its signal; without a signal, after its start.
struct Answer {
    Outcome outcome;
    double seconds = 0;
};
/// Starts citysplat and sends it `signal` after a while; 0: none.
Answer answer_of_citysplat(std::vector<std::string> arguments, int signal, std::chrono::milliseconds after);

/// What sends a program its signal, and when.
struct Stop {
    int signal;
    std::filesystem::path once_exists;  ///< a file
    std::filesystem::path output;       ///< the directory that the program writes
};

/// citysplat_with_signal(), into a new directory. A program that ends by itself before the signal arrives is
/// started again: on a busy machine this process may be the slower one.
inline Outcome stopped_citysplat(const std::vector<std::string>& arguments, const Stop& stop) {
    for (int attempt = 0;; ++attempt) {
        std::filesystem::remove_all(stop.output);
        Outcome outcome = citysplat_with_signal(arguments, stop.signal, stop.once_exists);
        if (outcome.exit_code != 0 || attempt == 20) return outcome;
    }
}

}  // namespace citysplat::test
