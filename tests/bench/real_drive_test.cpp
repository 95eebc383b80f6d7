#include "run_program.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

namespace test = citysplat::test;
using test::TempDir;

namespace {

const std::string kRealDrive = CITYSPLAT_SOURCE_DIR "/tools/bench/real_drive";

}  // namespace

TEST_CASE("real_drive explains itself and refuses what it does not know") {
    const auto help = test::run_program({kRealDrive, "--help"});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, Catch::Contains("--no-adjust") && Catch::Contains("--building"));
    CHECK(test::run_program({kRealDrive}).exit_code == 2);
    CHECK(test::run_program({kRealDrive, "--nonsense"}).exit_code == 2);
    const auto missing = test::run_program({kRealDrive, "/nowhere/at/all"});
    CHECK(missing.exit_code == 74);
    CHECK_THAT(missing.err, Catch::Contains("/nowhere/at/all"));
    const TempDir empty;
    const auto none = test::run_program({kRealDrive, empty.path().string(), "--build", CITYSPLAT_BUILD_DIR});
    CHECK(none.exit_code == 65);
    CHECK_THAT(none.err, Catch::Contains("no point files in this folder"));
}

TEST_CASE("real_drive makes a city of the even scans of a folder and judges the odd ones") {
    const TempDir dir{test::memory_directory()};
    const std::string drive = dir / "drive", city = dir / "city", folder = dir / "folder",
                      kept = dir / "kept", poses = drive + "/trajectory.tum";
    const auto run = [](const std::vector<std::string>& arguments) {
        const auto outcome = test::citysplat(arguments);
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
    };
    run({"synth", drive, "--length", "12", "--points-per-metre", "3000", "-q"});
    run({"build", city, drive, "--trajectory", poses, "--classes", "synthetic", "-q"});
    run({"simulate", city, "--sensor", "vlp-16", "--trajectory", poses, "--out", folder, "--rate", "4",
         "--format", "ply", "--frame", "world", "-q"});
    std::filesystem::copy_file(poses, folder + "/poses.tum");
    const auto outcome = test::run_program({kRealDrive, folder, "--build", CITYSPLAT_BUILD_DIR, "--scans",
                                            "0:4", "--no-adjust", "--building", "--method descriptors",
                                            "--judging", "--hits 1", "--keep", kept});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(outcome.err, Catch::Contains("3 scans for the city, 2 to be judged"));
    CHECK_THAT(outcome.out, Catch::Contains("<5 cm") && Catch::Contains("did not come back"));
    CHECK(std::filesystem::exists(kept + "/city/catalog.sqlite"));
}
