#include "core/file.hpp"
#include "io/tracks/track_file.hpp"
#include "run_json.hpp"
#include "temp_dir.hpp"

#include <cmath>
#include <filesystem>

namespace test = citysplat::test;
using namespace citysplat;
using nlohmann::json;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
    FileWriter out(path);
    out.text(text);
    out.finish();
}

/// Two cars that meet on a plate of 200 × 200 m, each with a scanner on its roof, and no city.
struct Meeting {
    test::TempDir dir;

    explicit Meeting(const std::string& self = "false") {
        write(dir / "plate.obj", "v -100 -100 0\nv 100 -100 0\nv 100 100 0\nv -100 100 0\nf 1 2 3 4\n");
        // 10 m/s towards each other, in lanes 4 m apart; the trajectories are those of the roofs.
        write(dir / "east.tum", "0 -20 0 2 0 0 0 1\n4 20 0 2 0 0 0 1\n");
        write(dir / "west.tum", "0 20 4 2 0 0 1 0\n4 -20 4 2 0 0 1 0\n");
        std::string toml = R"(
classes = "semantic_kitti"
[[object]]
name = "plate"
file = "plate.obj"
class = "road"
reflectance = 0.2
[[object]]
name = "car"
shape = "box"
size_m = [4.0, 1.8, 1.5]
class = "car"
[[actor]]
object = "plate"
place_m = [0, 0, 0]
)";
        for (const char* name : {"east", "west"})
            toml += std::string("[[vehicle]]\nname = \"") + name + "\"\nobject = \"car\"\ntrajectory = \"" +
                    name + ".tum\"\nobject_m = [0, 0, -2]\nself = " + self +
                    "\n[[vehicle.sensor]]\nname = \"roof\"\nsensor = \"vlp-16\"\nnoise = false\nhits = 1\n";
        write(dir / "s.toml", toml);
    }
    json run(const std::string& out) {
        return test::run_json({"simulate", "--scenario", dir / "s.toml", "--out", dir / out, "--clearance"});
    }
};

}  // namespace

TEST_CASE("two vehicles without a city see the road and each other and never themselves") {
    Meeting m;
    const json result = m.run("out");
    CHECK(result["actors"] == 3);
    CHECK(result["hits"] > 10'000);
    REQUIRE(result["clearance"].size() == 2);
    CHECK(result["clearance"][0]["touching"] == 0);
    // The lanes are 4 m apart and the cars 1.8 m wide: the road is nearer, 0.3 m below what counts of a car.
    CHECK(result["clearance"][0]["clearance_m"].get<double>() == Approx(0.3).margin(1e-3));
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(m.dir / "out/east/roof/boxes")) {
        const std::string text = read_text_file(entry.path());
        CHECK(text.find(",east,") == std::string::npos);
        if (text.find(",west,") == std::string::npos) continue;
        ++seen;
        for (const Track& track : read_tracks(entry.path(), {}).tracks) {
            if (track.name != "west") continue;
            // Where it was at the mean time of its returns.
            const StampedPose& p = track.path.poses().front();
            CHECK(p.world_from_body.translation.x == Approx(20 - 10 * p.time_s).margin(1e-3));
            CHECK(p.world_from_body.translation.y == Approx(4).margin(1e-6));
            CHECK(std::fabs(p.world_from_body.translation.z) < 1e-6);
            CHECK(track.size.length_m == Approx(4));
            CHECK(track.class_name == "car");
        }
    }
    CHECK(seen > 20);
    const std::string objects = read_text_file(m.dir / "out/west/roof/objects.csv");
    CHECK_THAT(objects,
               Catch::Contains("id,instance,name,class,object") && Catch::Contains(",east,car,car,4.0"));
    // KITTI's form is read back by our own reader with the poses of the run.
    std::string labels;
    for (int i = 0; i < 30; ++i) {
        char name[32];
        std::snprintf(name, sizeof name, "%06d.txt", i);
        labels += read_text_file(m.dir / "out/east/roof/label_02" / name);
    }
    write(m.dir / "labels.txt", labels);
    TrackOptions options;
    options.format = TrackOptions::Format::kitti_tracking;
    options.calibration = m.dir / "out/east/roof/label_calib.txt";
    options.poses = m.dir / "out/east/roof/poses.txt";
    bool found = false;
    for (const Track& track : read_tracks(m.dir / "labels.txt", options).tracks) {
        if (track.class_name != "car") continue;
        found = true;
        CHECK(track.size.width_m == Approx(1.8));
        CHECK(track.path.poses().front().world_from_body.translation.y == Approx(4).margin(1e-3));
    }
    CHECK(found);
}

TEST_CASE("a vehicle that asks for it sees itself") {
    Meeting m("true");
    m.run("out");
    const std::string text = read_text_file(m.dir / "out/east/roof/boxes/000000.csv");
    CHECK(text.find(",east,") != std::string::npos);
}

TEST_CASE("clearance asked for a time without poses is refused, not 0 m") {
    Meeting m;
    std::string plate;
    for (int i = 0; i < 2500; ++i)
        plate += std::to_string(i % 50 * 0.1) + " " + std::to_string(i / 50 * 0.1) + " 0\n";
    write(m.dir / "plate.xyz", plate);
    const std::string city = m.dir / "city";
    test::run_json({"build", city, m.dir / "plate.xyz"});
    const auto outcome = test::citysplat(
        {"clearance", city, "--trajectory", m.dir / "east.tum", "--box", "4,2,1.5", "--from", "50"});
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Catch::Contains("east.tum") && Catch::Contains("--from"));
}
