#include "run_json.hpp"
#include "temp_dir.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace test = citysplat::test;
using nlohmann::json;
using test::TempDir;

TEST_CASE("a synthetic drive goes through every verb, and the results have the keys scripts rely on") {
    const TempDir dir;
    const std::string drive = dir / "drive", city = dir / "city", scans = dir / "scans";
    const std::string trajectory = drive + "/trajectory.tum";

    const json synth =
        test::run_json({"synth", drive, "--length", "12", "--points-per-metre", "8000", "--seed", "7"},
                       {"files", "points", "length_m", "seed"});
    CHECK(synth["points"] > 50'000);
    const json info = test::run_json({"info", drive}, {"points", "format", "bounds", "classes"});
    CHECK(info["points"] == synth["points"]);

    const std::vector<std::string> build{"build",    city,        drive,      "--trajectory",
                                         trajectory, "--classes", "synthetic"};
    const json built =
        test::run_json(build, {"generation", "points_read", "points_kept", "points_dropped", "tiles_total",
                               "tiles_built", "tiles_reused", "tiles_empty", "splats", "seconds",
                               "peak_rss_bytes", "calibration/mean_radius_m", "calibration/mean_error_m",
                               "calibration/mean_density", "digest"});
    CHECK(built["points_read"] == synth["points"]);
    CHECK(built["splats"] > 1'000);
    const json again = test::run_json(build, {"tiles_built"});
    CHECK(again["tiles_built"] == 0);
    CHECK(again["digest"] == built["digest"]);

    const json status = test::run_json({"status", city}, {"tiles", "splats", "generation", "digest"});
    CHECK(status["digest"] == built["digest"]);
    const json verified = test::run_json({"verify", city, "--deep"}, {"checked", "corrupt"});
    CHECK(verified["corrupt"].empty());
    test::run_json({"gc", city, "--dry-run"}, {"freed_bytes"});

    const json simulated =
        test::run_json({"simulate", city, "--sensor", "hdl-32e", "--trajectory", trajectory, "--rate", "1",
                        "--format", "las", "--out", scans, "--seed", "3"},
                       {"scans", "rays", "hits", "seconds", "rays_per_second", "tiles_loaded",
                        "resident_peak_bytes", "backend", "digest"});
    CHECK(simulated["hits"] > 1'000);
    const json compared = test::run_json({"compare", scans, "--reference", drive, "--truth", drive},
                                         {"points", "c2c_mean_m", "c2c_p95_m", "classes"});
    CHECK(compared["points"] == simulated["hits"]);
    CHECK(compared["c2c_mean_m"] < 0.1);

    test::run_json({"render", city, "--along", trajectory, "--size", "160x90", "--out", dir / "model.png"},
                   {"width", "height", "seconds"});
    CHECK(std::filesystem::file_size(dir / "model.png") > 1'000);
    // A folder that is no city is one of clouds.
    test::run_json({"render", drive, "--along", trajectory, "--size", "160x90", "--out", dir / "cloud.png"});
    CHECK(std::filesystem::file_size(dir / "cloud.png") > 1'000);
    for (const char* format : {"ply", "2dgs", "las", "glb"}) {
        const json exported = test::run_json(
            {"export", city, "--format", format, "--out", dir / (std::string("splats.") + format)},
            {"splats", "files"});
        CHECK(exported["splats"] == built["splats"]);
    }
    CHECK(test::run_json({"sensors"}, {"list"})["list"].size() >= 10);
}
