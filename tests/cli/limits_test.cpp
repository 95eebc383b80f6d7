#include "core/rng_hd.hpp"
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
