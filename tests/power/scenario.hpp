#pragma once

#include "core/hash.hpp"
#include "power/sweep.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// A command on a city, and what must hold when the power fails in it.
namespace citysplat::power {

struct Published {
    std::int64_t generation = 0;
    Hash128 digest;
    friend bool operator==(const Published&, const Published&) = default;
};

/// The latest generation, when there is a city with one. Loads its tiles and throws when one cannot be read
/// or is not of the generation; without `readable` it does not load them.
std::optional<Published> published(const std::filesystem::path& city, bool readable = true);

/// Throws when `verify --deep` reports anything but objects that are known to be lost.
void verify(const std::filesystem::path& city, const std::set<Hash128>& lost = {});

/// Throws `otherwise` unless it holds.
void expect(bool holds, const std::string& otherwise);

/// Called with the directory of a scenario, and whether the command had ended with success before the cut.
using Step = std::function<void(const std::filesystem::path& root, bool done)>;

struct Promise {
    std::optional<Published> before{};  ///< nothing: there is no city before the command
    std::optional<Published> after{};   ///< once the command has ended with success
    std::set<Hash128> lost{};           ///< objects that are gone before the command
    Step next{};                        ///< the commands that a user would give next; they must succeed
    Step also{};                        ///< what else must hold before `next`
};

/// One command that writes, in a directory `root` that holds the city and its neighbours.
struct Scenario {
    std::string name{};
    bool is_repeatable = true;                 ///< the same command again keeps the same promise
    std::string city = "city";                 ///< below root
    std::vector<std::string> command{};        ///< of power_toy; "ROOT" stands for the directory
    std::vector<std::string> foreign_files{};  ///< below root: not ours, and there before and after
    std::function<void(const std::filesystem::path& root)> prepare{};
    Promise promise{};
};

/// Prepares the directory and records the command in it.
Recording record(const Scenario& scenario);

/// Throws what a user would call wrong: the city, a foreign file, or what the next command says.
Check check_of(const Scenario& scenario);

/// The same command in a directory as an interrupted run of it has left it. `durable`: it was a power cut, so
/// that what is there stays.
Scenario again(const Scenario& scenario, const DiskTree& left, bool durable);

}  // namespace citysplat::power
