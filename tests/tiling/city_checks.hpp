#pragma once

#include "temp_dir.hpp"
#include "tiling/build/builder.hpp"
#include "tiling/build/worker.hpp"
#include "tiling/toy_cloud.hpp"

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// What must hold for a city whatever is made of its points: the checks of the promises in terms of the
/// builder, used with the toy of the tiling tests and with real splats.
namespace citysplat::test {

/// What a city is made by, and from.
struct CityMaker {
    std::function<std::unique_ptr<tiling::TileProcessor>()> processor;
    /// Points of a street through [x, x + length) × [y, y + 40), a function of the arguments alone, whose GPS
    /// time is a tenth of x.
    std::function<std::vector<CloudPoint>(std::uint64_t seed, double x, double y, double length)> street;
    std::int64_t tile_m = 16;
    bool trajectory = false;  ///< give a drive along the street with every input
    bool carve = false;       ///< leave out what rays saw through

    /// Builds with the means given, or with its own.
    tiling::BuildReport build(const std::filesystem::path& city, const tiling::BuildOptions& options,
                              const std::optional<tiling::Calibration>& means = {}) const;
    /// What `build --shard` does: joins or makes the plan, and works on it.
    tiling::WorkReport work_as(const tiling::Shard& shard, const std::filesystem::path& city,
                               const tiling::BuildOptions& options) const;
};

CityMaker toy_maker();
/// The toy, of a street where things stand in front of a wall for a moment (label kPassing): carved.
CityMaker carving_maker();
inline constexpr std::uint16_t kPassing = 7;

/// A folder of input files and the city made of them.
struct Drive {
    explicit Drive(CityMaker made_by = toy_maker());

    CityMaker maker;
    TempDir dir{memory_directory()};
    std::filesystem::path city = dir / "city";
    std::map<std::string, std::vector<CloudPoint>> files;  ///< the inputs as they should be
    int cleans = 0;

    std::filesystem::path path(const std::string& name) const { return dir / name; }
    void put(const std::string& name, std::vector<CloudPoint> points);
    tiling::BuildOptions options() const;
    tiling::BuildReport build() const { return maker.build(city, options()); }
    std::filesystem::path last_clean() const { return dir / ("clean" + std::to_string(cleans - 1)); }
    tiling::BuildReport clean_build(const std::optional<tiling::Calibration>& means = {});
};

/// Changes the inputs in one random way; returns the options that tell the builder.
tiling::BuildOptions random_edit(Drive& d, std::uint64_t key);

/// The same digest for these tile sizes, refinement forced and not, one thread and two, files in any order,
/// merged, shuffled and divided.
void check_independence(const CityMaker& maker,
                        std::initializer_list<std::int64_t> sizes_m = {7, 10, 25, 32, 64, 200});

/// After every random edit: the digest of a clean build, and exactly the tiles made that had never been.
void check_edits(const CityMaker& maker, std::uint64_t seed, int edits);

/// Garbage beyond the core and halo of a tile changes no byte of it.
void check_non_interference(const CityMaker& maker);

}  // namespace citysplat::test
