#include "core/math/rng_hd.hpp"
#include "run_json.hpp"
#include "temp_dir.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

/// What the program may take from the system, and what it does with less.
namespace test = citysplat::test;
using nlohmann::json;
using test::TempDir;

namespace {

/// The program with no more than this many open files.
test::Outcome with_files(int most, std::vector<std::string> arguments) {
    std::vector<std::string> command{
        "sh",     "-c", "ulimit -n " + std::to_string(most) + "; exec \"$0\" \"$@\"", test::program(),
        "--json", "-q"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return test::run_program(command);
}

/// Text files with points all over the same square.
void write_overlapping(const std::filesystem::path& folder, int files, int points) {
    std::filesystem::create_directories(folder);
    for (int i = 0; i < files; ++i) {
        std::ofstream out(folder / ("cloud_" + std::to_string(10'000 + i) + ".xyz"));
        const std::uint64_t key = citysplat::rng::key(7, static_cast<std::uint64_t>(i));
        for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(points); ++k)
            out << citysplat::rng::uniform(key, 3 * k, 0, 30) << ' '
                << citysplat::rng::uniform(key, 3 * k + 1, 0, 30) << ' '
                << citysplat::rng::uniform(key, 3 * k + 2, 0, 0.02) << '\n';
    }
}

/// Scans of 70 m around poses half a metre apart, as KITTI has them.
void write_scans(const std::filesystem::path& folder, int scans) {
    std::filesystem::create_directories(folder / "velodyne");
    std::ofstream poses(folder / "poses.txt");
    for (int i = 0; i < scans; ++i) {
        poses << "1 0 0 " << 0.5 * i << " 0 1 0 0 0 0 1 0\n";
        std::string name = std::to_string(1'000'000 + i).substr(1);
        std::ofstream out(folder / "velodyne" / (name + ".bin"), std::ios::binary);
        const std::uint64_t key = citysplat::rng::key(11, static_cast<std::uint64_t>(i));
        for (std::uint64_t k = 0; k < 500; ++k) {
            const std::array<float, 4> point{
                static_cast<float>(citysplat::rng::uniform(key, 3 * k, -70, 70)),
                static_cast<float>(citysplat::rng::uniform(key, 3 * k + 1, -20, 20)),
                static_cast<float>(citysplat::rng::uniform(key, 3 * k + 2, -1.75, -1.70)), 0.5f};
            out.write(reinterpret_cast<const char*>(point.data()), sizeof point);
        }
    }
}

/// Builds with few open files and with as many as there are: the same city.
void check_with_files(const TempDir& dir, const std::string& input, std::initializer_list<int> limits) {
    const json expected = test::run_json({"build", dir / "city", input, "--no-resample"});
    CHECK(expected["splats"] > 0);
    for (const int most : limits) {
        INFO("ulimit -n " << most);
        const test::Outcome outcome =
            with_files(most, {"build", dir / ("city" + std::to_string(most)), input, "--no-resample"});
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        CHECK(json::parse(outcome.out)["digest"] == expected["digest"]);
    }
}

}  // namespace

TEST_CASE("many overlapping inputs build with few open files") {
    const TempDir dir(test::memory_directory());
    write_overlapping(dir / "clouds", 480, 40);
    check_with_files(dir, dir / "clouds", {64, 128});
}

TEST_CASE("a folder of a thousand overlapping scans builds with few open files", "[slow]") {
    const TempDir dir(test::memory_directory());
    write_scans(dir / "sequence", 1'100);
    check_with_files(dir, dir / "sequence", {128});
}

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// At most a tenth more than the budget. Not with sanitizers: most of the memory is theirs then.
void check_peak([[maybe_unused]] const test::Outcome& outcome, [[maybe_unused]] int budget_mib) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(outcome.peak_rss_bytes <= static_cast<std::uint64_t>(budget_mib) * kMiB * 11 / 10);
#endif
}

/// Builds with these budgets: the same city, in at most a tenth more than the budget, or refused with the
/// least that is enough.
void check_budgets(const std::string& drive, std::initializer_list<int> budgets_mib) {
    const TempDir dir(test::memory_directory());
    std::string digest;
    for (const int budget : budgets_mib) {
        const std::string memory = std::to_string(budget) + "M", city = dir / memory;
        INFO(memory);
        const test::Outcome outcome =
            test::citysplat({"--json", "-q", "build", city, drive, "--trajectory", drive + "/trajectory.tum",
                             "--classes", "synthetic", "--memory", memory});
        INFO(outcome.err);
        check_peak(outcome, budget);
        if (outcome.exit_code == 2) {
            CHECK(outcome.err.find("is too little for this: the least is ") != std::string::npos);
            continue;
        }
        REQUIRE(outcome.exit_code == 0);
        const std::string made = json::parse(outcome.out)["digest"];
        if (digest.empty()) digest = made;
        CHECK(made == digest);
        std::filesystem::remove_all(city);
    }
    CHECK_FALSE(digest.empty());
}

}  // namespace

TEST_CASE("a build stays within its memory") {
    const TempDir dir(test::memory_directory());
    const std::string drive = dir / "drive";
    test::run_json({"synth", drive, "--length", "30", "--points-per-metre", "40000"});
    check_budgets(drive, {128, 256});
}

TEST_CASE("ten million points are built within any memory that is accepted", "[slow]") {
    const TempDir dir(test::memory_directory());
    const std::string drive = dir / "drive";
    test::run_json({"synth", drive, "--length", "200"});
    check_budgets(drive, {128, 192, 256, 300, 500, 1024, 2048, 4096});
}

TEST_CASE("a budget that one crowded place exceeds is refused with the least that is enough") {
    const TempDir dir(test::memory_directory());
    const std::filesystem::path cloud = dir / "crowd.xyz";
    {
        std::ofstream out(cloud);
        for (std::uint64_t k = 0; k < 1'200'000; ++k)
            out << citysplat::rng::uniform(1, 3 * k, 0, 3) << ' '
                << citysplat::rng::uniform(1, 3 * k + 1, 0, 3) << ' '
                << citysplat::rng::uniform(1, 3 * k + 2, 0, 0.01) << '\n';
    }
    const test::Outcome outcome =
        test::citysplat({"build", dir / "city", cloud, "--no-resample", "--memory", "128M"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.err.find("--memory 128M is too little for this: the least is ") != std::string::npos);
    check_peak(outcome, 128);
    const json enough = test::run_json({"build", dir / "city", cloud, "--no-resample", "--memory", "2G"});
    CHECK(enough["inputs_read"] == 0);
}
