#pragma once

#include "power/disk_tree.hpp"
#include "power/model_disk.hpp"
#include "power/operation_log.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::power {

/// What a program did to a directory.
struct Recording {
    DiskSnapshot before, after;
    std::vector<Operation> operations;  ///< the last is its exit
    /// Earlier work that led to `before` and that no power cut has ended: not all of it is durable.
    std::shared_ptr<const Recording> earlier{};

    /// The disk when the program begins.
    ModelDisk disk(NameModel model) const;
};

/// What a program did until it was killed before operation `n`.
Recording killed_before(const Recording& recording, std::size_t n);

/// Runs a program under the recorder. Throws when it fails.
Recording record(const std::filesystem::path& root, const std::vector<std::string>& command);

/// Which moments and which survivals a sweep tries.
struct SweepOptions {
    std::size_t stride = 1;         ///< a cut after every so many operations; always one after the last
    std::uint64_t mixtures = 3;     ///< random ones per cut
    std::uint64_t at_the_end = 20;  ///< random ones after the last operation: nothing may be undone there
};

/// Looks at what a cut has left in this directory and throws when a promise is broken. `done`: the program
/// had ended with success before the cut.
using Check = std::function<void(const std::filesystem::path& root, bool done)>;

struct SweepReport {
    std::size_t operations = 0;
    std::size_t states = 0;    ///< tried
    std::size_t distinct = 0;  ///< of them; equal ones are looked at once
    std::size_t bad = 0;       ///< states that break a promise
    /// What was wrong → at which cuts, with the operation before the first of them.
    std::map<std::string, std::vector<std::string>> problems;

    SweepReport& operator+=(const SweepReport& other);
};

/// Cuts the power after the operations of a recording, in both models, and checks what is left.
SweepReport sweep(const Recording& recording, const SweepOptions& options, const Check& check);

}  // namespace citysplat::power
