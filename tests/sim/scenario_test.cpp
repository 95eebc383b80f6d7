#include "sim/drive/scenario.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "sim/drive/prepared_traffic.hpp"
#include "sim/drive/scenario_session.hpp"
#include "sim/traffic/ground.hpp"
#include "sim/traffic/traffic_plan.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
    FileWriter out(path);
    out.text(text);
    out.finish();
}

ObstacleField some_field(ObstacleField::Motion motion) {
    ObstacleField f;
    f.motion = motion;
    f.seed = 7;
    f.count = 20;
    f.region = {{1000, 2000, 30}, {1020, 2030, 38}};
    f.slowest_m_s = 2, f.fastest_m_s = 9;
    f.start_s = 100;
    return f;
}

const ClassMap& some_classes() {
    static const ClassMap map("few", 1,
                              {{1, {"road", SplatGroup::ground, false, 0}},
                               {2, {"building", SplatGroup::surface, false, 0}},
                               {10, {"Car", SplatGroup::surface, true, 0}},
                               {11, {"pedestrian", SplatGroup::surface, true, 0}}});
    return map;
}

const TrafficSpan kEverywhere{0, 100, {{-1e6, -1e6, -1e6}, {1e6, 1e6, 1e6}}};

constexpr const char* kTriangle = "v 0 0 0\nv 4 0 0\nv 0 2 1\nusemtl car\nf 1 2 3\n";

/// What loading and planning a scenario says, or "fine".
std::string outcome(const test::TempDir& dir, const std::string& toml) {
    write(dir / "s.toml", toml);
    try {
        const Scenario scenario = Scenario::load(dir / "s.toml");
        plan_traffic(scenario.things, some_classes(), kEverywhere, {});
    } catch (const Error& e) {
        return e.what();
    }
    return "fine";
}

const std::string kSensors = "trajectory = \"ego.tum\"\n[[sensor]]\nsensor = \"vlp-16\"\n";

}  // namespace

TEST_CASE("obstacles are where their formula says for any step size") {
    using Motion = ObstacleField::Motion;
    for (const Motion motion : {Motion::constant_velocity, Motion::free_fall, Motion::random_walk}) {
        const ObstacleField field = some_field(motion);
        for (const std::uint32_t number : {0u, 7u, 19u}) {
            const std::vector<Track> whole = obstacle_tracks(field, number, 100, 120);
            const std::vector<Track> later = obstacle_tracks(field, number, 113.7, 114.9);
            std::size_t met = 0;
            for (double time_s = 100; time_s < 120; time_s += 0.0371) {
                const Vec3d want = obstacle_position(field, number, time_s);
                CHECK(want.x >= 1000 - 1e-6);
                CHECK(want.x <= 1020 + 1e-6);
                CHECK(want.z >= 30 - 1e-6);
                CHECK(want.z <= 38 + 1e-6);
                for (const auto* tracks : {&whole, &later})
                    for (const Track& track : *tracks) {
                        if (!track.exists(time_s)) continue;
                        // A piece ends where it leaves the region: within a rounding of that it may be either
                        // side.
                        if (std::min(time_s - track.begin_s, track.end_s - time_s) < 1e-5) continue;
                        ++met;
                        CHECK(length(track.pose_at(time_s).translation - want) < 2.1e-4);
                    }
            }
            CHECK(met > 500);
            // At every time there is exactly one.
            for (double time_s = 100.01; time_s < 119.9; time_s += 0.0533) {
                int there = 0;
                for (const Track& track : whole) there += track.exists(time_s);
                CHECK(there == 1);
            }
        }
    }
}

TEST_CASE("obstacles move as their kind does") {
    // Under gravity, from the top, but for the moments in which one begins again.
    const ObstacleField fall = some_field(ObstacleField::Motion::free_fall);
    int falling = 0;
    for (double t = 100; t < 104; t += 0.05) {
        const double a = obstacle_position(fall, 2, t).z, b = obstacle_position(fall, 2, t + 0.01).z,
                     c = obstacle_position(fall, 2, t + 0.02).z;
        if (!(a > b && b > c)) continue;
        ++falling;
        CHECK((c - 2 * b + a) / 1e-4 == Approx(-9.81).epsilon(1e-4));
    }
    CHECK(falling > 70);
    const ObstacleField straight = some_field(ObstacleField::Motion::constant_velocity);
    const Vec3d a = obstacle_position(straight, 3, 101), b = obstacle_position(straight, 3, 101.001);
    const double speed = length(b - a) / 0.001;
    CHECK(speed >= 2 - 1e-6);
    CHECK(speed <= 9 + 1e-6);
    CHECK(length(obstacle_position(straight, 3, 101) - obstacle_position(straight, 4, 101)) > 0.01);
}

TEST_CASE("a scenario puts objects where its tables say") {
    const test::TempDir dir;
    write(dir / "ego.tum", "0 10 0 1.5 0 0 0 1\n100 110 0 1.5 0 0 0 1\n");
    write(dir / "lead.tum", "5 0 0 0 0 0 0 1\n15 20 0 0 0 0 0 1\n");
    write(dir / "golf.obj", kTriangle);
    write(dir / "tracks.csv",
          "time,id,class,x,y,z,yaw,length,width,height\n1,a,Car,0,0,0,0,4,2,1.5\n2,a,Car,5,0,0,0,4,2,1.5\n"
          "9,a,Car,5,0,0,0,4,2,1.5\n9.5,a,Car,6,0,0,0,4,2,1.5\n1,b,Pedestrian,0,9,0,0,0.5,0.5,1.8\n1.5,b,"
          "Pedestrian,0,9,0,0,0.5,0.5,1.8\n");
    write(dir / "s.toml", R"(
[[object]]
name = "golf"
file = "golf.obj"
scale = 2.0
reflectance = 0.4

[[object]]
name = "ball"
shape = "sphere"
size_m = 1.0
class = "pedestrian"

[[actor]]
name = "lead"
object = "golf"
track = "lead.tum"
instance = 2

[[actor]]
object = "ball"
place_m = [1.0, 2.0, 3.0]
place_deg = [90.0, 0.0, 0.0]
from_s = 3.0

[[vehicle]]
name = "ego"
object = "golf"
trajectory = "ego.tum"
object_m = [0.0, 0.0, -1.5]
[[vehicle.sensor]]
sensor = "vlp-16"
[[vehicle.sensor]]
name = "rear"
sensor = "vlp-16"

[[traffic]]
file = "tracks.csv"
objects = { Pedestrian = "ball" }

[[obstacle]]
object = "ball"
motion = "free-fall"
count = 2
min_m = [0, 0, 0]
max_m = [10, 10, 10]
)");
    const Scenario scenario = Scenario::load(dir / "s.toml");
    REQUIRE(scenario.sensors.size() == 2);
    CHECK(scenario.sensors[0].name == "ego/vlp-16");
    CHECK(scenario.sensors[1].name == "ego/rear");
    CHECK(scenario.sensors[1].vehicle == 0);
    CHECK(scenario.trajectory_of(scenario.sensors[0]) == dir / "ego.tum");
    TrafficPlan plan = plan_traffic(scenario.things, some_classes(), {0, 3, kEverywhere.region}, {});
    const auto& actors = plan.actors;
    REQUIRE(actors.size() > 6);
    CHECK(actors[0].name == "lead");
    CHECK(actors[0].instance == 2);
    CHECK(actors[0].track.exists(10));
    CHECK_FALSE(actors[0].track.exists(4));
    CHECK(actors[1].instance == 1);  // the first that is free
    CHECK_FALSE(actors[1].track.exists(2));
    CHECK(actors[1].track.exists(1e6));
    // The middle of the bottom face of the scaled triangle is the origin.
    const auto& mesh = std::get<TriangleMesh>(plan.shapes[actors[0].shape].form);
    CHECK(mesh.box().min.x == Approx(-4));
    CHECK(mesh.box().max.y == Approx(2));
    CHECK(mesh.box().min.z == 0);
    CHECK(mesh.materials[0].label == 10);  // by its name
    CHECK(mesh.materials[0].reflectance == Approx(0.4f));
    const auto& ball = std::get<TriangleMesh>(plan.shapes[actors[1].shape].form);
    CHECK(ball.materials[0].label == 11);
    for (const Vec3f v : ball.vertices) CHECK(length(vec_cast<double>(v) - Vec3d{0, 0, 0.5}) == Approx(0.5));
    // The vehicle's body sits 1.5 m below its trajectory, and its own sensors do not meet it.
    CHECK(actors[2].vehicle == 0);
    CHECK((actors[2].track.pose_at(0) * actors[2].object_from_shape).translation.z == Approx(0));
    // The car of the tracks is a box of its size; what is later than the run is not there.
    CHECK(plan.rows[3].object == "box 4 × 2 × 1.5");
    CHECK(actors[3].label == 10);
    CHECK(plan.rows[4].object == "ball");
    CHECK(actors[4].label == 11);
    CHECK(actors[3].instance != actors[4].instance);
    // All that exists has a name, and the pieces of one obstacle one instance.
    CHECK(actors[5].name == "ball 0");
    const Traffic traffic(std::move(plan.shapes), std::move(plan.actors));
    CHECK(traffic.shapes().size() == 3);
}

TEST_CASE("mistakes in the tables of a scenario are named by file and line and key") {
    const test::TempDir dir;
    write(dir / "ego.tum", "0 10 0 1.5 0 0 0 1\n100 110 0 1.5 0 0 0 1\n");
    write(dir / "golf.obj", kTriangle);
    const std::string object = "[[object]]\nname = \"golf\"\nfile = \"golf.obj\"\n";
    CHECK(outcome(dir, kSensors + object) == "fine");
    const std::pair<std::string, const char*> cases[]{
        {object + "colour = 1\n", "s.toml: [[object]] 1, line 7: unknown key \"colour\""},
        {"[[object]]\nname = \"golf\"\n", "[[object]] 1, line 4: \"file\" is missing"},
        {object + "scale = -1\n", "line 7: \"scale\" is -1"},
        {object + "axes = \"x-up\"\n", "line 7: \"axes\" is \"x-up\"; expected one of z-up, y-up"},
        {object + "reflectance = 2\n", "\"reflectance\" is 2"},
        {object + object, "two objects are named \"golf\""},
        {"[[object]]\nname = \"g\"\nfile = \"none.obj\"\n[[actor]]\nobject = \"g\"\nplace_m = [0, 0, 0]\n",
         "none.obj"},
        {object + "class = \"tank\"\n[[actor]]\nobject = \"golf\"\nplace_m = [0, 0, 0]\n",
         "object \"golf\": no class \"tank\" in the class map few; there are road, building, Car, "
         "pedestrian"},
        {"[[actor]]\nobject = \"golf\"\nplace_m = [0, 0, 0]\n", "no [[object]] has that name"},
        {object + "[[actor]]\nobject = \"golf\"\n", "an actor has one of them"},
        {object + "[[actor]]\nobject = \"golf\"\nplace_m = [0, 0]\n", "\"place_m\" must have three numbers"},
        {object + "[[actor]]\nobject = \"golf\"\nplace_m = [0, 0, 0]\nfrom_s = 5\nto_s = 4\n",
         "\"to_s\" is not after"},
        {object + "[[actor]]\nobject = \"golf\"\nplace_m = [0, 0, 0]\ninstance = 0\n", "\"instance\" is 0"},
        {object + "[[actor]]\nobject = \"golf\"\nplace_m = [0, 0, 0]\nground = \"sea\"\n",
         "expected file or city"},
        {"[[vehicle]]\nname = \"a/b\"\ntrajectory = \"ego.tum\"\n", "may not contain '/'"},
        {"[[vehicle]]\nname = \"a\"\n", "\"trajectory\" is missing"},
        {"[[traffic]]\nfile = \"none.csv\"\n", "none.csv"},
        {"[[traffic]]\nfile = \"a\"\nformat = \"cars\"\n", "expected one of auto, csv, kitti-tracking"},
        {"[[traffic]]\nfile = \"a\"\nobjects = { Car = \"x\" }\n", "class \"Car\" of"},
        {object + "[[obstacle]]\nobject = \"golf\"\nmax_m = [1, 1, 1]\nspeed_m_s = 1\n",
         "\"min_m\" is missing"},
        {object + "[[obstacle]]\nobject = \"golf\"\nmin_m = [0, 0, 0]\nmax_m = [1, 1, 1]\n",
         "\"speed_m_s\" must be"},
        {object + "[[obstacle]]\nobject = \"golf\"\nmin_m = [0, 0, 2]\nmax_m = [1, 1, 1]\nspeed_m_s = 1\n",
         "below"},
    };
    for (const auto& [tables, words] : cases) {
        INFO(tables);
        CHECK_THAT(outcome(dir, kSensors + tables), Catch::Contains(words));
    }
    CHECK_THAT(outcome(dir, "[[sensor]]\nsensor = \"vlp-16\"\n"),
               Catch::Contains("\"trajectory\" is missing"));
    CHECK_THAT(outcome(dir, "seed = 1\n[[vehicle]]\nname = \"a\"\ntrajectory = \"ego.tum\"\n"),
               Catch::Contains("no [[sensor]]"));
}

TEST_CASE("actors stand on the road of the city with height and pitch and roll") {
    // A road that rises by 5 % to the east and leans by 2 % to the north, below trees that are 6 m above it.
    const auto road = [](double x, double y) { return 40 + 0.05 * x + 0.02 * y; };
    const CastAtCity cast = [&](std::span<const trace::Ray> rays, std::span<trace::Hit> hits) {
        for (std::size_t i = 0; i < rays.size(); ++i) {
            const trace::Ray& r = rays[i];
            const double z = road(r.origin.x, r.origin.y), up = static_cast<double>(r.direction.z);
            if (r.origin.x > 60) continue;  // the scanned road ends
            for (const auto& [surface, label] : {std::pair{z + 6, 2}, {z, 1}, {z - 0.5, 2}}) {
                const double t = (surface - r.origin.z) * up;
                if (t < static_cast<double>(r.t_min) || t > static_cast<double>(r.t_max)) continue;
                if (hits[i].exists() && static_cast<double>(hits[i].t) < t) continue;
                hits[i].t = static_cast<float>(t);
                hits[i].range_m = t;
                hits[i].splat_id = 1;
                hits[i].label = static_cast<std::uint16_t>(label);
            }
        }
    };
    for (const double z :
         {0.0, 1.0}) {  // without a height of its own, and with one that is half a metre wrong
        TrafficPlan plan;
        Actor actor;
        std::vector<StampedPose> poses;
        const double yaw = 0.3;
        for (int i = 0; i < 8; ++i) {
            const double x = 10 * i, y = x * std::tan(yaw);
            poses.push_back(
                {1.0 * i, {{x, y, z == 0 ? 0.0 : road(x, y) + 0.5}, from_yaw_pitch_roll(yaw, 0, 0)}});
        }
        actor.track = Track::along("a", Trajectory(poses));
        actor.track.size = {4, 2, 1.5};
        actor.instance = 1;
        plan.actors.push_back(actor);
        plan.rows.push_back({});
        plan.on_ground = {true};
        stand_on_city(plan, some_classes(), 30, 60, cast);
        const Track& track = plan.actors[0].track;
        CHECK(track.begin_s == 0);
        for (double t = 0; t < 5.5; t += 0.37) {
            const Pose p = track.pose_at(t);
            CHECK(p.translation.z == Approx(road(p.translation.x, p.translation.y)).margin(1e-3));
            // The wheels are on the road: so are the axes of the car, but for the second order.
            const Vec3d ahead = p.apply({1.2, 0, 0}), left = p.apply({0, 0.8, 0});
            CHECK(ahead.z == Approx(road(ahead.x, ahead.y)).margin(2e-3));
            CHECK(left.z == Approx(road(left.x, left.y)).margin(2e-3));
            CHECK(p.translation.x == Approx(10 * t).margin(1e-6));
        }
        REQUIRE(plan.notes.size() == 1);
        CHECK_THAT(plan.notes[0], Catch::Contains("have no scanned ground"));
    }
}

TEST_CASE("obstacles that would need more poses than memory holds are refused before they are made") {
    const test::TempDir dir;
    write(dir / "ego.tum", "0 10 0 1.5 0 0 0 1\n100 110 0 1.5 0 0 0 1\n");
    const std::string ball = kSensors +
                             "[[object]]\nname = \"ball\"\nshape = \"sphere\"\nsize_m = 1\n"
                             "[[obstacle]]\nobject = \"ball\"\ncount = 2\nmin_m = [0, 0, 0]\n";
    const std::string walk = ball + "max_m = [10, 10, 10]\nmotion = \"random-walk\"\nspeed_m_s = 1\n";
    CHECK(outcome(dir, walk) == "fine");
    for (const std::string& endless :
         {walk + "start_s = -9e10\n", walk + "leg_s = 0.001\nstart_s = -99999\n",
          ball + "max_m = [1e-6, 10, 10]\nspeed_m_s = 10000\n",
          ball + "max_m = [10, 10, 10]\nmotion = \"free-fall\"\ncount = 10000\nstart_s = 0\n"}) {
        std::string text = endless;
        // A key may stand there once.
        if (const std::size_t second = text.find("count = 10000"); second != std::string::npos)
            text.erase(text.find("count = 2\n"), 10);
        CHECK_THAT(outcome(dir, text), Catch::Contains("obstacle \"ball\"") && Catch::Contains("20 million"));
    }
    // What is promised about the number of poses holds.
    for (const auto motion : {ObstacleField::Motion::constant_velocity, ObstacleField::Motion::free_fall,
                              ObstacleField::Motion::random_walk})
        for (const double end_s : {101.0, 250.0}) {
            const ObstacleField field = some_field(motion);
            std::size_t poses = 0;
            for (const Track& track : obstacle_tracks(field, 3, 90, end_s))
                poses += track.path.poses().size();
            CHECK(static_cast<double>(poses) <= most_poses(field, 90, end_s));
        }
}

TEST_CASE("obstacles that began thousands of years ago are where they are now") {
    ObstacleField field = some_field(ObstacleField::Motion::constant_velocity);
    field.start_s = -9e10;  // 1.5e-5 s between two times since then
    for (std::uint32_t number = 0; number < field.count; ++number) {
        const std::vector<Track> tracks = obstacle_tracks(field, number, 100, 120);
        REQUIRE(!tracks.empty());
        CHECK(tracks.size() < 200);
        CHECK(tracks.front().begin_s == Approx(100));
        CHECK(tracks.back().end_s == Approx(120));
    }
}

TEST_CASE("obstacles are there until the end of the sweep that begins last, and at the last moment") {
    const test::TempDir dir;
    write(dir / "s.toml", kSensors +
                              "[[object]]\nname = \"ball\"\nshape = \"sphere\"\nsize_m = 1\n"
                              "[[obstacle]]\nobject = \"ball\"\ncount = 3\nmin_m = [0, 0, 0]\n"
                              "max_m = [10, 10, 10]\nspeed_m_s = 1\n");
    const Scenario scenario = Scenario::load(dir / "s.toml");
    const Trajectory way({{0, Pose{}}, {100, Pose{{100, 0, 0}, {}}}});
    const auto there = [&](const SensorWay& sensor, double time_s) {
        const TrafficSpan span = span_of(std::span(&sensor, 1));
        const TrafficPlan plan = plan_traffic(scenario.things, some_classes(), span, {});
        return std::count_if(plan.actors.begin(), plan.actors.end(),
                             [&](const Actor& actor) { return actor.track.exists(time_s); });
    };
    // Scans of 0.1 s may begin at 20 s.
    CHECK(there({way, 10, 20, 50, 0.1}, 10) == 3);
    CHECK(there({way, 10, 20, 50, 0.1}, 20) == 3);
    CHECK(there({way, 10, 20, 50, 0.1}, 20.09) == 3);
    CHECK(there({way, 10, 20, 50, 0.1}, 21) == 0);
    // A moment: all rays of a camera, or a picture.
    CHECK(there({way, 20, 20, 50}, 20) == 3);
    CHECK(there({way, 0, 1e9, 50}, 100) == 3);
    // No sweep goes beyond the trajectory.
    const SensorWay whole{way, 0, 1e9, 50, 0.1};
    CHECK(span_of(std::span(&whole, 1)).sweep_s == 0);
}

TEST_CASE("who is told its way meets obstacles until the last sweep has ended, too") {
    const test::TempDir dir;
    write(dir / "s.toml",
          "[[sensor]]\nsensor = \"vlp-16\"\n[[object]]\nname = \"ball\"\nshape = \"sphere\"\n"
          "size_m = 1\n[[obstacle]]\nobject = \"ball\"\ncount = 3\nmin_m = [0, 0, 0]\n"
          "max_m = [10, 10, 10]\nspeed_m_s = 1\n");
    const NoCity nothing(some_classes());
    const auto tracer = trace::make_group_tracer();
    ScenarioSessionOptions options;
    options.from_s = 10, options.to_s = 20;
    const ScenarioSession session({nothing, *tracer},
                                  Scenario::load(dir / "s.toml", Scenario::Ways::may_be_told), options,
                                  CancelToken());
    const auto there = [&](double time_s) {
        const auto actors = session.traffic().actors();
        return std::count_if(actors.begin(), actors.end(),
                             [&](const Actor& actor) { return actor.track.exists(time_s); });
    };
    CHECK(there(10) == 3);
    CHECK(there(20.09) == 3);
    CHECK(there(21) == 0);
}

TEST_CASE("boxes of one size have the reflectance of their own traffic, and tracks without one are counted") {
    const test::TempDir dir;
    write(dir / "ego.tum", "0 10 0 1.5 0 0 0 1\n100 110 0 1.5 0 0 0 1\n");
    write(dir / "a.csv",
          "time,id,x,y,z,yaw,length,width,height\n1,a,0,0,0,0,4,2,1.5\n2,a,5,0,0,0,4,2,1.5\n"
          "1,b,0,9,0,0,0,0,0\n2,b,1,9,0,0,0,0,0\n1,c,0,9,0,0,0,0,0\n2,c,1,9,0,0,0,0,0\n");
    write(dir / "s.toml", kSensors +
                              "[[traffic]]\nfile = \"a.csv\"\nreflectance = 0.1\n"
                              "[[traffic]]\nfile = \"a.csv\"\nreflectance = 0.9\n");
    const TrafficPlan plan =
        plan_traffic(Scenario::load(dir / "s.toml").things, some_classes(), kEverywhere, {});
    REQUIRE(plan.actors.size() == 2);
    const auto reflectance = [&](std::size_t actor) {
        return std::get<TriangleMesh>(plan.shapes[plan.actors[actor].shape].form).materials[0].reflectance;
    };
    CHECK(reflectance(0) == Approx(0.1f));
    CHECK(reflectance(1) == Approx(0.9f));
    std::string notes;
    for (const std::string& note : plan.notes) notes += note + "\n";
    CHECK_THAT(notes, Catch::Contains("2 tracks, \"b\" the first of them, have no size and no object"));
}
