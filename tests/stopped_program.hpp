#pragma once

#include "run_program.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::test {

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
