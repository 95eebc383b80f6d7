#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "io/input/input_list.hpp"
#include "io/tracks/track_file.hpp"
#include "run_json.hpp"
#include "temp_dir.hpp"

#include <algorithm>
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

TEST_CASE("a vehicle that asks for it sees itself and does not touch itself") {
    Meeting m("true");
    const json result = m.run("out");
    REQUIRE(result["clearance"].size() == 2);
    for (const json& vehicle : result["clearance"]) {
        CHECK(vehicle["touching"] == 0);
        CHECK(vehicle["nearest"]["what"] == "plate");
    }
    const std::string text = read_text_file(m.dir / "out/east/roof/boxes/000000.csv");
    CHECK(text.find(",east,") != std::string::npos);
}

TEST_CASE("a collision is told by name and time, by simulate and by clearance, without a city") {
    Meeting m;
    // A post in the lane of the car that drives east, met by its front after 1.8 s and left by its back
    // at 2.22.
    const std::string post =
        "[[object]]\nname = \"post\"\nshape = \"box\"\nsize_m = [0.2, 0.2, 2]\nclass = \"pole\"\n"
        "[[actor]]\nname = \"the post\"\nobject = \"post\"\nplace_m = [0.1, 0.5, 0]\n";
    write(m.dir / "s.toml", read_text_file(m.dir / "s.toml") + post);
    const json simulated = m.run("out")["clearance"][0];
    CHECK(simulated["vehicle"] == "east");
    CHECK(simulated["clearance_m"] == 0);
    CHECK(simulated["nearest"]["what"] == "the post");
    const json asked =
        test::run_json({"clearance", "--scenario", m.dir / "s.toml", "--vehicle", "east", "--trajectory",
                        m.dir / "east.tum", "--box", "4,1.8,1.5", "--place", "0,0,-2", "--step", "0.02"});
    CHECK(asked["touched"] == simulated["touched"]);
    CHECK(asked["poses"] == simulated["poses"]);
    CHECK(asked["nearest"] == simulated["nearest"]);
    REQUIRE(asked["touched"].size() == 1);
    CHECK(asked["touched"][0][0].get<double>() == Approx(1.8).margin(0.021));
    CHECK(asked["touched"][0][1].get<double>() == Approx(2.22).margin(0.021));
    CHECK(
        test::citysplat({"clearance", "--trajectory", m.dir / "east.tum", "--box", "4,1.8,1.5"}).exit_code ==
        2);
}

TEST_CASE("a picture shows what moves where it is at its time") {
    Meeting m;
    const auto picture = [&](const std::string& time) {
        return test::run_json({"render", "--scenario", m.dir / "s.toml", "--eye", "0,-20,6", "--look-at",
                               "0,0,1", "--time", time, "--size", "64x48", "--shade", "range", "--out",
                               m.dir / ("at" + time + ".png")});
    };
    CHECK(picture("0")["hits"] > 1000);
    CHECK(picture("2")["hits"] > 1000);
    CHECK(read_text_file(m.dir / "at0.png") != read_text_file(m.dir / "at2.png"));
    for (const std::vector<std::string>& wrong :
         {std::vector<std::string>{"--scenario", m.dir / "s.toml"}, {"--time", "2"}, {}}) {
        std::vector<std::string> command{"render", "--eye", "0,-20,6",      "--look-at",
                                         "0,0,1",  "--out", m.dir / "a.png"};
        command.insert(command.end(), wrong.begin(), wrong.end());
        CHECK(test::citysplat(command).exit_code == 2);
    }
}

TEST_CASE("instances of SemanticKITTI come back on the objects they were simulated on") {
    const test::TempDir dir;
    struct Parked {
        std::uint16_t instance;
        Pose pose;
    };
    const Parked parked[]{
        {17, {{651010, 6861004, 35}, from_yaw_pitch_roll(30 * exact::kRadPerDegree, 0, 0)}},
        {40000, {{651014, 6860992, 35}, from_yaw_pitch_roll(-70 * exact::kRadPerDegree, 0, 0)}}};
    std::string toml =
        "classes = \"semantic_kitti\"\ntrajectory = \"ego.tum\"\n[[sensor]]\nsensor = \"vlp-16\"\n"
        "noise = false\nhits = 1\nformat = \"kitti\"\n[[object]]\nname = \"car\"\nshape = \"box\"\n"
        "size_m = [4.0, 1.8, 1.5]\nclass = \"car\"\n[[object]]\nname = \"road\"\nshape = \"box\"\n"
        "size_m = [80, 80, 0.1]\nclass = \"road\"\n[[actor]]\nobject = \"road\"\n"
        "place_m = [651010, 6861000, 34.9]\ninstance = 2\n"
        "[[actor]]\nobject = \"car\"\ninstance = 17\nplace_m = [651010, 6861004, 35]\n"
        "place_deg = [30, 0, 0]\n[[actor]]\nobject = \"car\"\ninstance = 40000\n"
        "place_m = [651014, 6860992, 35]\nplace_deg = [-70, 0, 0]\n";
    write(dir / "s.toml", toml);
    write(dir / "ego.tum", "0 651000 6861000 36.8 0 0 0 1\n1 651010 6861000 36.8 0 0 0.1 0.99498744\n");
    test::run_json({"simulate", "--scenario", dir / "s.toml", "--out", dir / "out"});
    const auto scans = expand_inputs(std::vector<std::string>{dir / "out"});
    REQUIRE(scans.size() >= 9);
    std::size_t points = 0, on[2]{};
    double worst_m = 0;
    for (const InputSource& scan : scans) {
        const auto file = scan.open();
        PointBatch batch;
        for (std::size_t block = 0; block < file->block_count(); ++block) {
            file->read_block(block, batch);
            REQUIRE(batch.instance.size() == batch.size());
            points += batch.size();
            for (std::size_t i = 0; i < batch.size(); ++i)
                for (std::size_t k = 0; k < 2; ++k) {
                    if (batch.instance[i] != parked[k].instance) continue;
                    CHECK(batch.label[i] == 10);
                    ++on[k];
                    const Vec3d p = inverse(parked[k].pose).apply({batch.x[i], batch.y[i], batch.z[i]});
                    worst_m = std::max(worst_m, std::fabs(std::max({std::fabs(p.x) - 2, std::fabs(p.y) - 0.9,
                                                                    std::fabs(p.z - 0.75) - 0.75})));
                }
        }
    }
    CHECK(points > 20'000);
    CHECK(on[0] > 300);
    CHECK(on[1] > 300);
    // A tenth of a millimetre over 4 m is far below 0.01 degrees.
    CHECK(worst_m < 5e-4);
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
