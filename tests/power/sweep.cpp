#include "power/sweep.hpp"

#include "core/math/rng_hd.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"

#include <set>
#include <stdexcept>

namespace citysplat::power {

namespace fs = std::filesystem;

namespace {

std::vector<Survival> survivals_of(const SweepOptions& options, std::size_t cut, bool done) {
    using Kind = Survival::Kind;
    std::vector<Survival> all{{Kind::nothing}, {Kind::names}, {Kind::data}, {Kind::everything}};
    for (std::uint64_t i = 0; i < (done ? options.at_the_end : options.mixtures); ++i)
        all.push_back({Kind::mixture, rng::key(cut, i) % 1'000'000});
    return all;
}

/// Messages name objects and directories by chance.
std::string without_names(std::string message, const std::string& root) {
    for (std::size_t at; (at = message.find(root)) != std::string::npos;) message.erase(at, root.size());
    std::string text;
    std::size_t digits = 0;
    for (const char c : message) {
        digits = std::isxdigit(static_cast<unsigned char>(c)) ? digits + 1 : 0;
        text += c;
        if (digits == 32) text.replace(text.size() - 32, 32, "HASH");
    }
    return text;
}

class Sweep {
  public:
    Sweep(const Recording& recording, const SweepOptions& options, const Check& check)
        : recording_(recording), options_(options), check_(check) {
        report_.operations = recording.operations.size();
    }

    SweepReport run() {
        for (const NameModel model : {NameModel::ordered, NameModel::unordered}) {
            ModelDisk disk = recording_.disk(model);
            for (std::size_t cut = 0;; ++cut) {
                const bool done = cut == recording_.operations.size();
                if (done || cut % options_.stride == 0) try_cut(disk, model, cut);
                if (done) break;
                disk.apply(recording_.operations[cut]);
            }
        }
        return std::move(report_);
    }

  private:
    void try_cut(const ModelDisk& disk, NameModel model, std::size_t cut) {
        const bool done = cut == recording_.operations.size();
        for (const Survival& survival : survivals_of(options_, cut, done)) {
            const DiskTree tree = disk.after_cut(survival);
            ++report_.states;
            const auto [seen, is_new] = problem_of_.try_emplace({hash_of(tree), done});
            if (is_new) {
                ++report_.distinct;
                seen->second = problem_of(tree, done);
            }
            if (seen->second.empty()) continue;
            ++report_.bad;
            const std::string before = cut == 0 ? "the start" : text_of(recording_.operations[cut - 1]);
            report_.problems[seen->second].push_back(
                (model == NameModel::ordered ? "ordered, " : "unordered, ") + text_of(survival) +
                ", cut after operation " + std::to_string(cut) + " (" + before + ")");
        }
    }

    std::string problem_of(const DiskTree& tree, bool done) const {
        const test::TempDir directory(test::memory_directory());
        const fs::path root = directory / "root";
        write_tree(tree, root);
        try {
            check_(root, done);
            return {};
        } catch (const std::exception& e) {
            return without_names(e.what(), root.string());
        }
    }

    const Recording& recording_;
    const SweepOptions& options_;
    const Check& check_;
    SweepReport report_;
    std::map<std::pair<Hash128, bool>, std::string> problem_of_;
};

}  // namespace

Recording record(const fs::path& root, const std::vector<std::string>& command) {
    const test::TempDir scratch(test::memory_directory());
    const fs::path log = scratch / "log";
    Recording recording;
    recording.before = read_snapshot(root);
    std::vector<std::string> words{"env", std::string("LD_PRELOAD=") + CITYSPLAT_POWER_RECORDER,
                                   "ASAN_OPTIONS=verify_asan_link_order=0", "POWER_ROOT=" + root.string(),
                                   "POWER_LOG=" + log.string()};
    words.insert(words.end(), command.begin(), command.end());
    const test::Outcome outcome = test::run_program(words);
    if (outcome.exit_code != 0)
        throw std::runtime_error(command[1] + " failed with " + std::to_string(outcome.exit_code) + ": " +
                                 outcome.err);
    recording.after = read_snapshot(root);
    recording.operations = read_log(log, root);
    if (recording.operations.empty() || recording.operations.back().kind != OperationKind::exit)
        throw std::runtime_error(command[1] + ": the log does not end with the exit of the program");
    return recording;
}

ModelDisk Recording::disk(NameModel model) const {
    if (!earlier) return {before, model};
    ModelDisk disk = earlier->disk(model);
    for (const Operation& operation : earlier->operations) disk.apply(operation);
    disk.take_inodes_of(before);
    return disk;
}

Recording killed_before(const Recording& recording, std::size_t n) {
    Recording killed = recording;
    killed.operations.resize(n);
    return killed;
}

SweepReport& SweepReport::operator+=(const SweepReport& other) {
    operations += other.operations;
    states += other.states;
    distinct += other.distinct;
    bad += other.bad;
    for (const auto& [problem, cuts] : other.problems)
        problems[problem].insert(problems[problem].end(), cuts.begin(), cuts.end());
    return *this;
}

SweepReport sweep(const Recording& recording, const SweepOptions& options, const Check& check) {
    return Sweep(recording, options, check).run();
}

}  // namespace citysplat::power
