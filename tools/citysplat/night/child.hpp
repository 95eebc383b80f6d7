#pragma once

#include "core/cancel.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace citysplat::cli {

/// How a step of a night ended.
struct StepResult {
    std::string name;                  ///< the verb
    std::vector<std::string> command;  ///< as a person would type it
    int code = 0;                      ///< exit code; 128 + signal when it was killed
    double seconds = 0;
    nlohmann::json result;  ///< what it printed with --json; null when that was nothing
    bool ok() const { return code == 0; }
    /// What it said when it failed.
    std::string error() const;
};

/// Runs this program with these words and --json, waits for its end, and passes a request to stop on to it.
/// What it says on stderr goes to ours.
StepResult run_verb(const std::vector<std::string>& words, const CancelToken& cancel);

/// Runs another program to its end; its outputs are ours. Returns its exit code, 127 when it cannot be
/// started.
int run_command(const std::vector<std::string>& words, const CancelToken& cancel);

/// A line that a shell reads as these words.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace citysplat::cli
