#include "small_city.hpp"

#include <cmath>
#include <fstream>
#include <iterator>

namespace test = citysplat::test;
using nlohmann::json;

namespace {

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A small sensor as its data sheet has it, the same one as it is, and scans that it made.
struct Lesson : test::SmallCity {
    std::string sheet = dir / "small.toml", law = dir / "law.toml", scans = dir / "scans",
                model = dir / "model.toml";

    Lesson() {
        const std::string head =
            "name = \"small\"\nkind = \"spinning\"\n[spin]\nrate_hz = 10\ncolumns_per_turn = 360\n[beams]\n"
            "count = 16\nfirst_deg = 5\nlast_deg = -25\n[range]\nmin_m = 0.5\nmax_m = 50\n";
        std::ofstream(sheet) << head;
        std::ofstream(law) << head
                           << "[error]\nbias_m = 0.03\nsigma_m = 0.01\n[drop]\nprobability = 0.05\n"
                              "max_incidence_deg = 70\n";
        test::run_json({"simulate", city, "--sensor", law, "--trajectory", trajectory, "--format", "las",
                        "--out", scans});
    }
    json learn(const std::string& out) const {
        return test::run_json({"learn-sensor", city, "--scans", scans + "/scans", "--trajectory", trajectory,
                               "--sensor", sheet, "--out", out, "--effort", "0.1"});
    }
    std::vector<std::string> simulation(const std::string& out, const std::vector<std::string>& more) const {
        std::vector<std::string> all{"simulate", city,      "--trajectory", trajectory,
                                     "--out",    dir / out, "--no-scans"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
};

}  // namespace

TEST_CASE("a model is learned from scans, used by a simulation, and refused where it does not belong") {
    const Lesson lesson;
    const json learned = lesson.learn(lesson.model);
    CHECK(learned["beams"] == 16);
    CHECK(learned["scans"] > 10);
    CHECK(learned["held_out"]["log_loss"] < learned["held_out"]["constant_loss"]);
    CHECK(learned["held_out"]["calibration_error"] < 0.05);
    const std::string again = lesson.dir / "again.toml";
    CHECK(lesson.learn(again)["training_digest"] == learned["training_digest"]);
    CHECK(content_of(again) == content_of(lesson.model));

    const json law = test::run_json(lesson.simulation("a", {"--sensor", lesson.law})),
               plain = test::run_json(lesson.simulation("b", {"--sensor", lesson.sheet})),
               with = test::run_json(
                   lesson.simulation("c", {"--sensor", lesson.sheet, "--model", lesson.model}));
    CHECK(plain["dropped"] == 0);
    const double wanted = law["dropped"], dropped = with["dropped"];
    CHECK(std::fabs(dropped - wanted) < 0.15 * wanted);
    CHECK(with["digest"] != plain["digest"]);
    CHECK(test::run_json(lesson.simulation("d", {"--sensor", lesson.sheet, "--model", lesson.model,
                                                 "--threads", "1", "--resident", "2M"}))["digest"] ==
          with["digest"]);

    // The sensor file may name the model.
    const std::string named = lesson.dir / "named.toml";
    std::ofstream(named) << "model = \"model.toml\"\n" << content_of(lesson.sheet);
    CHECK(test::run_json(lesson.simulation("e", {"--sensor", named}))["digest"] == with["digest"]);

    const test::Outcome other =
        test::citysplat(lesson.simulation("f", {"--sensor", "vlp-32c", "--model", lesson.model}));
    CHECK(other.exit_code == 78);
    CHECK_THAT(other.err, Catch::Contains("16 beams"));
    CHECK_FALSE(std::filesystem::exists(lesson.dir / "f"));
    std::string damaged = content_of(lesson.model);
    damaged[damaged.size() / 2] ^= 1;
    std::ofstream(again) << damaged;
    const test::Outcome broken =
        test::citysplat(lesson.simulation("g", {"--sensor", lesson.sheet, "--model", again}));
    CHECK(broken.exit_code == 65);
    CHECK_THAT(broken.err, Catch::Contains("again.toml") && Catch::Contains("checksum"));

    const std::string calibrated = lesson.dir / "calibrated.toml";
    const json found =
        test::run_json({"calibrate", lesson.city, "--scans", lesson.scans + "/scans", "--trajectory",
                        lesson.trajectory, "--sensor", lesson.sheet, "--out", calibrated});
    CHECK(found["beams_seen"] >= 14);
    const double bias = found["bias_m"][0].get<double>() + 8 * found["bias_m"][1].get<double>() +
                        64 * found["bias_m"][2].get<double>();
    CHECK(bias == Approx(0.03).margin(0.001));
    CHECK(found["rmse_after_m"].get<double>() == Approx(0.01).epsilon(0.05));
    CHECK(found["rmse_after_m"].get<double>() < 0.65 * found["rmse_before_m"].get<double>());
    test::run_json(lesson.simulation("h", {"--sensor", calibrated}));
}

TEST_CASE("without the name of a sensor a model is learned for the one that the scans show") {
    const Lesson lesson;
    const json learned =
        test::run_json({"learn-sensor", lesson.city, "--scans", lesson.scans + "/scans", "--trajectory",
                        lesson.trajectory, "--out", lesson.model, "--effort", "0.1"});
    const std::string sensor = lesson.dir / "model.sensor.toml";
    CHECK(learned["sensor_file"] == sensor);
    CHECK(learned["held_out"]["log_loss"] < learned["held_out"]["constant_loss"]);
    const std::string text = content_of(sensor);
    CHECK_THAT(text, Catch::Contains("columns_per_turn = 360\n") &&
                         Catch::Contains("sense = \"counterclockwise\"") && Catch::Contains("elevation_deg"));
    const json law = test::run_json(lesson.simulation("a", {"--sensor", lesson.law})),
               seen = test::run_json(lesson.simulation("b", {"--sensor", sensor, "--model", lesson.model}));
    const double wanted = law["hits"], returns = seen["hits"];
    CHECK(std::fabs(returns - wanted) < 0.05 * wanted);
}

TEST_CASE("calibrate takes known distances, and says what it needs") {
    const test::TempDir dir;
    {
        std::ofstream table(dir / "distances.csv");
        table << "true_m,measured_m\n";
        for (int i = 0; i < 200; ++i) {
            const double d = 0.5 + 0.0175 * i;
            table << d << "," << d + 0.016 + (i % 2 == 0 ? 0.003 : -0.003) << "\n";
        }
    }
    const std::string out = dir / "urg.toml";
    const json found =
        test::run_json({"calibrate", "--table", dir / "distances.csv", "--sensor", "urg-04lx", "--out", out});
    CHECK(found["rmse_after_m"].get<double>() == Approx(0.003).epsilon(0.05));
    CHECK_THAT(content_of(out), Catch::Contains("bias_m") && Catch::Contains("known distances"));
    CHECK(test::citysplat({"calibrate", "--sensor", "urg-04lx", "--out", out}).exit_code == 2);
    CHECK(test::citysplat({"calibrate", dir / "nowhere", "--sensor", "vlp-16", "--out", out}).exit_code == 2);
}
