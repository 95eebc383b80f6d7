#pragma once

#include "core/hash.hpp"
#include "power/sweep.hpp"
#include "temp_dir.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace citysplat::power {

struct Published {
    std::int64_t generation = 0;
    Hash128 digest;
    friend bool operator==(const Published&, const Published&) = default;
};

/// What must hold after a power cut in a command.
struct Promise {
    std::optional<Published> before{};  ///< nothing: there is no city before the command
    std::optional<Published> after{};   ///< once the command has ended with success
    std::set<Hash128> lost{};           ///< objects that are gone before the command
    /// The commands that a user would give next, without looking at what the cut has left.
    std::function<void(const std::filesystem::path& root, bool done)> next{};
    /// What else must hold when the city has been looked at and before `next`.
    std::function<void(const std::filesystem::path& root, bool done)> also{};
};

/// One command that writes, in a directory `root` that holds the city and its neighbours.
struct Scenario {
    std::string name{};
    bool is_repeatable = true;                 ///< the same command again ends with the same promise
    std::string city = "city";                 ///< below root
    std::vector<std::string> command{};        ///< of power_toy; "ROOT" stands for the directory
    std::vector<std::string> foreign_files{};  ///< below root: not ours, and there before and after
    std::function<void(const std::filesystem::path& root)> prepare{};
    Promise promise{};
};

/// Two inputs, the cities made of them, and a scenario for every command that writes.
class CityScenarios {
  public:
    CityScenarios();
    const std::vector<Scenario>& all() const { return all_; }
    const Scenario& named(const std::string& name) const;

  private:
    void make_bases();
    void add_builds();
    void add_repeated_builds();
    void add_shards();
    void add_care();
    void add_repairs();
    void add_packs();
    void add(Scenario scenario);
    std::function<void(const std::filesystem::path&)> copy_of(const std::string& base) const;
    void build(const std::filesystem::path& city, std::optional<std::uint32_t> shard = {}) const;

    test::TempDir dir_{test::memory_directory()};
    std::filesystem::path file_a_ = dir_ / "a.cloud", file_b_ = dir_ / "b.cloud", touched_ = dir_ / "c.cloud";
    Hash128 digest_a_, digest_ab_;
    std::vector<Scenario> all_;
};

/// The same command in a directory as a power cut in it has left it.
Scenario again(const Scenario& scenario, const DiskTree& after_cut);

/// Prepares the directory and records the command in it.
Recording record(const Scenario& scenario);

/// Throws what a user would call wrong.
Check check_of(const Scenario& scenario);

}  // namespace citysplat::power
