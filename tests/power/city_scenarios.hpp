#pragma once

#include "core/hash.hpp"
#include "power/scenario.hpp"
#include "temp_dir.hpp"
#include "tiling/build/build_options.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace citysplat::power {

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
    void add_plans();
    void add_care();
    void add_repairs();
    void add_packs();
    void add_banks();
    void add(Scenario scenario);
    std::function<void(const std::filesystem::path&)> copy_of(const std::string& base) const;
    tiling::BuildOptions both() const;
    void build(const std::filesystem::path& city) const;
    void plan(const std::filesystem::path& city) const;

    test::TempDir dir_{test::memory_directory()};
    std::filesystem::path file_a_ = dir_ / "a.cloud", file_b_ = dir_ / "b.cloud", touched_ = dir_ / "c.cloud";
    Hash128 digest_a_, digest_ab_;
    std::vector<Scenario> all_;
};

}  // namespace citysplat::power
