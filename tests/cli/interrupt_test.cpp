#include "small_city.hpp"
#include "stopped_program.hpp"

#include <catch2/catch.hpp>

#include <csignal>

namespace test = citysplat::test;
using test::Outcome;
using test::TempDir;

TEST_CASE("Ctrl-C stops a build with exit code 130 and leaves a directory the next build completes") {
    const TempDir dir;
    const std::string drive = dir / "drive", city = dir / "city";
    REQUIRE(
        test::citysplat({"synth", drive, "--length", "60", "--points-per-metre", "10000", "-q"}).exit_code ==
        0);
    const std::vector<std::string> build{"build", city, drive, "--classes", "synthetic", "-q"};

    const Outcome stopped = test::stopped_citysplat(build, {SIGINT, city + "/catalog.sqlite", city});
    INFO(stopped.err);
    CHECK(stopped.exit_code == 130);
    CHECK(test::citysplat(build).exit_code == 0);
    CHECK(test::citysplat({"verify", city, "--deep", "-q"}).exit_code == 0);
}

TEST_CASE("Ctrl-C stops a long survey with exit code 130 within seconds, and the next one takes its place") {
    const TempDir dir;
    const std::string drive = dir / "drive";
    const Outcome stopped = test::stopped_citysplat({"synth", drive, "--length", "100000", "-q"},
                                                    {SIGINT, drive + "/cloud_000.las", drive});
    CHECK(stopped.exit_code == 130);
    CHECK_THAT(stopped.err, Catch::Contains("interrupted"));
    CHECK(test::citysplat({"synth", drive, "--length", "5", "--points-per-metre", "100", "-q"}).exit_code ==
          0);
    CHECK_FALSE(std::filesystem::exists(drive + "/unfinished_drive.txt"));
}

TEST_CASE("Ctrl-C and SIGTERM stop a simulation with exit code 130, and the next one completes it") {
    const test::SmallCity c;
    const std::string scans = c.dir / "scans";
    const std::vector<std::string> simulate{"simulate",   c.city,  "--sensor", "hdl-64e", "--trajectory",
                                            c.trajectory, "--out", scans,      "--rate",  "100"};
    for (const int signal : {SIGINT, SIGTERM}) {
        const Outcome stopped =
            test::stopped_citysplat(simulate, {signal, scans + "/velodyne/000000.bin", scans});
        INFO(stopped.err);
        CHECK(stopped.exit_code == 130);
        CHECK(stopped.out.empty());
    }
    CHECK(test::citysplat(simulate).exit_code == 0);
}
