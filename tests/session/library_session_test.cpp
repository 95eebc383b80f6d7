#include "citysplat/session.hpp"
#include "cli/small_city.hpp"
#include "core/file.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <cmath>

namespace api = citysplat::api;
namespace test = citysplat::test;
using Catch::Contains;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
    citysplat::FileWriter out(path);
    out.text(text);
    out.finish();
}

std::vector<api::Trajectory::Stamped> poses_of(const std::filesystem::path& file) {
    std::vector<api::Trajectory::Stamped> all;
    const citysplat::Trajectory path = citysplat::read_trajectory(file);
    for (const citysplat::StampedPose& p : path.poses()) {
        const auto& [t, q] = p.world_from_body;
        all.push_back({p.time_s, {{t.x, t.y, t.z}, q.x, q.y, q.z, q.w}});
    }
    return all;
}

/// Two cars and a ball in a small city.
struct Street : test::SmallCity {
    std::vector<api::Trajectory::Stamped> ego = poses_of(trajectory);

    Street() {
        // The second car drives ahead of the first, and sways.
        std::string ahead;
        for (std::size_t i = 0; i < ego.size(); ++i) {
            const api::Vec3& p = ego[i].pose.position;
            char line[200];
            std::snprintf(line, sizeof line, "%.9f %.6f %.6f %.6f 0 0 %.9f %.9f\n", ego[i].time_s, p.x + 9,
                          p.y + 0.2 * std::sin(0.1 * static_cast<double>(i)), p.z - 1.5, std::sin(0.01),
                          std::cos(0.01));
            ahead += line;
        }
        write(dir / "ahead.tum", ahead);
        write(dir / "files.toml",
              scenario("trajectory = \"" + trajectory + "\"\n", "track = \"ahead.tum\"\n"));
        write(dir / "told.toml", scenario("", "place_m = [0, 0, -1000]\n"));
    }
    std::string scenario(const std::string& ego_way, const std::string& ahead_way) const {
        return "[[object]]\nname = \"car\"\nshape = \"box\"\nsize_m = [4.0, 1.8, 1.5]\nclass = \"moving "
               "vehicle\"\n"
               "[[actor]]\nname = \"ahead\"\nobject = \"car\"\n" +
               ahead_way + "[[vehicle]]\nname = \"ego\"\nobject = \"car\"\nobject_m = [0, 0, -1.5]\n" +
               ego_way +
               "[[vehicle.sensor]]\nname = \"roof\"\nsensor = \"vlp-16\"\nmount_m = [0, 0, 0.3]\n"
               "[[vehicle.sensor]]\nname = \"front\"\nsensor = \"vlp-16\"\nmount_m = [2.2, 0, 0]\nnoise = "
               "false\n";
    }
};

/// As many poses as a sweep until `time_s` needs: one after its end.
void tell_until(api::Session& session, const std::string& name, double time_s,
                std::span<const api::Trajectory::Stamped>& poses) {
    std::size_t n = 0;
    while (n < poses.size() && poses[n].time_s < time_s + 1e-6) ++n;
    n = std::min(n + 1, poses.size());
    session.advance(name, poses.first(n));
    poses = poses.subspan(n);
}

}  // namespace

TEST_CASE("a session that is told where cars are writes what the program writes for their files") {
    const Street s;
    const auto by_program =
        test::run_json({"simulate", s.city, "--scenario", s.dir / "files.toml", "--out", s.dir / "scans"});
    CHECK(by_program["sensors"][0]["part_hits"] > 100);
    const api::City city(s.city);
    SECTION("told") {
        api::Session session(city, s.dir / "told.toml");
        CHECK(session.sensors() == std::vector<std::string>{"ego/roof", "ego/front"});
        CHECK(session.names() == std::vector<std::string>{"ego", "ahead"});
        std::span<const api::Trajectory::Stamped> ego = s.ego;
        const auto ahead = poses_of(s.dir / "ahead.tum");
        std::span<const api::Trajectory::Stamped> other = ahead;
        for (std::uint64_t k = 0; k < by_program["sensors"][0]["scans"]; ++k) {
            const double time_s = s.ego[0].time_s + static_cast<double>(k) / 10;
            tell_until(session, "ego", time_s + 0.1, ego);
            tell_until(session, "ahead", time_s + 0.1, other);
            for (const std::size_t sensor : {0u, 1u}) {
                const api::Scan scan = session.scan(sensor, time_s);
                CHECK(scan.index == k);
                CHECK(scan.time_s == time_s);
            }
        }
        CHECK(session.result(0).digest == by_program["sensors"][0]["digest"]);
        CHECK(session.result(1).digest == by_program["sensors"][1]["digest"]);
        CHECK(session.result(0).hits == by_program["sensors"][0]["hits"]);
    }
    SECTION("told nothing: the files count") {
        api::Session session(city, s.dir / "files.toml");
        for (std::uint64_t k = 0; k < by_program["sensors"][0]["scans"]; ++k)
            session.scan(0, s.ego[0].time_s + static_cast<double>(k) / 10);
        CHECK(session.result(0).digest == by_program["sensors"][0]["digest"]);
    }
}

TEST_CASE("a session of one sensor casts rays, measures clearance and refuses what cannot be") {
    const Street s;
    const api::City city(s.city);
    api::SimulationOptions how;
    api::Session session(city, api::Sensor::load("vlp-16"), how);
    const double begin_s = s.ego[0].time_s;
    CHECK_THROWS_WITH(session.scan(0, begin_s), Contains("for no time"));
    session.advance("trajectory", std::span(s.ego).first(3));
    CHECK_THROWS_WITH(session.scan(0, begin_s + 1e4), Contains("tell the session"));
    CHECK_THROWS_WITH(session.scan(0, std::nan("")), Contains("tell the session"));
    CHECK_THROWS_WITH(session.scan(1, begin_s), Contains("not a sensor 1"));
    CHECK_THROWS_WITH(session.advance("trajectory", std::span(s.ego).first(1)), Contains("does not follow"));
    CHECK_THROWS_WITH(session.advance("nobody", s.ego), Contains("there are trajectory"));
    CHECK_THROWS_WITH(session.leave("trajectory", 0), Contains("has no body"));
    session.advance("trajectory", std::span(s.ego).subspan(3));
    CHECK(session.scan(0, begin_s).returns.size() == api::Sensor::load("vlp-16").rays_per_scan());

    // To the side and down: below the recording car itself nothing was scanned.
    const api::Vec3 eye = s.ego[s.ego.size() / 2].pose.position;
    const std::vector<api::Ray> down{{eye, {0, 0.6f, -0.8f}}, {eye, {0, 0, 1}}};
    const auto hits = session.cast(down, begin_s);
    REQUIRE(hits[0].found);
    CHECK_FALSE(hits[1].found);
    CHECK(hits[0].splat == api::Caster(city).cast(down)[0].splat);
    CHECK_THROWS_AS(session.cast(std::vector<api::Ray>{{eye, {0, 0, -1}, 0, 1e6f}}, begin_s), api::Error);

    api::ClearanceQuestion question{{{-0.5, -0.5, -0.5}, {0.5, 0.5, 0.5}}, {eye}, begin_s};
    question.limit_m = 5;
    const api::Clearance near = session.clearance(question);
    CHECK(near.found);
    CHECK(near.actor.empty());
    CHECK(near.distance_m < hits[0].range_m);
    question.pose.position.z = std::nan("");
    CHECK_THROWS_AS(session.clearance(question), api::Error);
    question.pose.position.z = 0;
    question.vehicle = "nobody";
    CHECK_THROWS_WITH(session.clearance(question), Contains("no vehicle \"nobody\""));
    question.vehicle = "";
    std::swap(question.body.min, question.body.max);
    CHECK_THROWS_WITH(session.clearance(question), Contains("lower corner"));

    write(s.dir / "none.toml", "[[vehicle]]\nname = \"a\"\n[[vehicle.sensor]]\nsensor = \"vlp-16\"\n");
    CHECK_NOTHROW(api::Session(city, s.dir / "none.toml"));
    CHECK(test::citysplat({"simulate", s.city, "--scenario", s.dir / "none.toml", "--out", s.dir / "x"})
              .exit_code == 78);
}
