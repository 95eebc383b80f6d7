#include "run_program.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace test = citysplat::test;
using test::Outcome;
using test::TempDir;

namespace {

constexpr int kUsage = 2, kBadData = 65, kIo = 74, kConfiguration = 78;

std::vector<std::string> all_benches() {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(CITYSPLAT_SOURCE_DIR "/tools/bench")) {
        if (!entry.is_regular_file()) continue;
        const std::string name = entry.path().stem().string();
        std::ifstream file(entry.path());
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        if (entry.path().extension() == ".cpp" && text.find("int main(") != std::string::npos)
            names.push_back(name);
    }
    return names;
}

Outcome run_bench(std::vector<std::string> command) {
    command[0] = std::string(CITYSPLAT_BENCH_DIR) + "/" + command[0];
    return test::run_program(command);
}

/// The bench ends with that exit code, one line on stderr that begins with its name, and no figure.
Outcome require_refusal(const std::vector<std::string>& command, int exit_code) {
    std::string line;
    for (const std::string& word : command) line += word + " ";
    INFO(line);
    const Outcome outcome = run_bench(command);
    INFO(outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK_THAT(outcome.err, Catch::StartsWith(command[0] + ": "));
    CHECK_THAT(outcome.err, !Catch::Contains("terminate called") && !Catch::Contains("internal error"));
    CHECK_THAT(outcome.out, !Catch::Contains("/s ") && !Catch::Contains("nan"));
    return outcome;
}

/// A short drive with few points, and its city.
struct Street {
    TempDir dir{test::memory_directory()};
    std::string drive = dir / "drive", city = dir / "city", trajectory = drive + "/trajectory.tum";

    Street() {
        REQUIRE(test::citysplat({"synth", drive, "--length", "12", "--points-per-metre", "3000", "-q"})
                    .exit_code == 0);
        REQUIRE(test::citysplat(
                    {"build", city, drive, "--trajectory", trajectory, "--classes", "synthetic", "-q"})
                    .exit_code == 0);
    }
};

}  // namespace

TEST_CASE("every bench explains itself") {
    const auto names = all_benches();
    CHECK(names.size() >= 8);
    for (const std::string& name : names) {
        INFO(name);
        const Outcome help = run_bench({name, "--help"});
        CHECK(help.exit_code == 0);
        CHECK(help.err.empty());
        CHECK_THAT(help.out, Catch::Contains("Usage: " + name) && Catch::Contains("--table"));
    }
}

TEST_CASE("an unknown flag of a bench is a usage error") {
    for (const std::string& name : all_benches())
        CHECK_THAT(require_refusal({name, "--nonsense"}, kUsage).err, Catch::Contains(name + " --help"));
}

TEST_CASE("a bench refuses numbers that make no sense") {
    require_refusal({"bench_las", "0"}, kUsage);
    require_refusal({"bench_las", "ten"}, kUsage);
    require_refusal({"bench_neighbours", "drive", "-1"}, kUsage);
    require_refusal({"bench_partition", "out", "drive", "--memory", "much"}, kUsage);
    require_refusal({"bench_quality", "--length", "nan"}, kUsage);
    require_refusal({"bench_splat", "drive", "0"}, kUsage);
    require_refusal({"bench_splat", "drive", "64", "none"}, kUsage);
    require_refusal({"bench_stream", "--km", "inf"}, kUsage);
    require_refusal({"bench_trace", "--splats", "1e6"}, kUsage);
}

TEST_CASE("a bench names the file that is not there") {
    const TempDir dir;
    const std::string missing = dir / "missing";
    const auto refused = [&](const std::vector<std::string>& command, int exit_code) {
        CHECK_THAT(require_refusal(command, exit_code).err, Catch::Contains(missing));
    };
    refused({"bench_las", "1", missing}, kIo);
    refused({"bench_load", missing}, kConfiguration);
    refused({"bench_neighbours", missing}, kBadData);
    refused({"bench_partition", dir / "out", missing}, kIo);
    refused({"bench_splat", missing}, kBadData);
    refused({"bench_trace", missing, missing}, kConfiguration);
    std::ofstream(missing) << "a file, not a directory";
    require_refusal({"bench_quality", "--keep", missing + "/below"}, kIo);
    require_refusal({"bench_neighbours", dir.path().string()}, kBadData);  // a directory without clouds
}

TEST_CASE("bench_partition wants a new directory") {
    const TempDir dir;
    std::ofstream(dir / "cloud.xyz") << "652000 6861000 30\n";
    CHECK_THAT(require_refusal({"bench_partition", dir.path().string(), dir / "cloud.xyz"}, kUsage).err,
               Catch::Contains("not empty"));
}

TEST_CASE("rays that meet nothing give no figure") {
    const Street street;
    SECTION("a city without a trajectory through it is refused") {
        CHECK_THAT(require_refusal({"bench_trace", street.city}, kUsage).err, Catch::Contains("trajectory"));
    }
    SECTION("a drive through another place is refused") {
        const std::string elsewhere = street.dir / "elsewhere.tum";
        std::ofstream file(elsewhere);
        for (int t = 0; t < 20; ++t) file << t << ' ' << 5000 + 10 * t << " 5000 2 0 0 0 1\n";
        file.close();
        const Outcome refused =
            require_refusal({"bench_trace", street.city, elsewhere, "--scans", "6"}, kBadData);
        CHECK_THAT(refused.err, Catch::Contains("rays met a splat"));
    }
    SECTION("its own drive gives figures that are numbers") {
        const std::string table = street.dir / "table.md";
        const Outcome outcome =
            run_bench({"bench_trace", street.city, street.trajectory, "--scans", "6", "--sensor", "vlp-16",
                       "--sensor", "scattered", "--duel-scans", "1", "--rounds", "1", "--table", table});
        INFO(outcome.err);
        CHECK(outcome.exit_code == 0);
        CHECK_THAT(outcome.out, Catch::Contains("× the bare Embree loop") && !Catch::Contains("nan"));
        CHECK_THAT(outcome.out, Catch::Contains("vlp-16, 5 hits, 2 threads") && Catch::Contains("× Embree"));
        CHECK(std::filesystem::file_size(table) > 100);
    }
}
