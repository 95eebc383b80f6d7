#include "citysplat/build.hpp"
#include "citysplat/simulation.hpp"
#include "small_city.hpp"

#include <algorithm>
#include <cmath>

namespace api = citysplat::api;
namespace test = citysplat::test;
using Catch::Contains;

TEST_CASE("the library builds, reads and simulates what the program does") {
    const test::SmallCity c;
    SECTION("a city is read as it is") {
        const api::City city(c.city);
        CHECK(city.digest() == c.built["digest"]);
        CHECK(city.splats() == c.built["splats"]);
        std::uint64_t splats = 0;
        for (std::size_t i = 0; i < city.tiles().size(); ++i) {
            const api::TileInfo& tile = city.tiles()[i];
            const auto all = city.tile(i);
            CHECK(all.size() == tile.splats);
            splats += all.size();
            for (const api::Splat& s : all)
                if (s.centre.x < tile.min.x || s.centre.x > tile.max.x || s.centre.y < tile.min.y ||
                    s.centre.y > tile.max.y)
                    FAIL("a splat outside the box of its tile");
        }
        CHECK(splats == city.splats());
        CHECK(city.class_name(7) == "road");
    }
    SECTION("scans have the digest of the program") {
        const auto by_program = test::run_json({"simulate", c.city, "--sensor", "vlp-16", "--trajectory",
                                                c.trajectory, "--out", c.dir / "scans", "--rate", "2"});
        api::SimulationOptions options;
        options.scans_per_second = 2;
        std::uint64_t scans = 0, hits = 0;
        const auto result =
            api::simulate(api::City(c.city), api::Sensor::load("VLP-16"), api::Trajectory::read(c.trajectory),
                          options, [&](const api::Scan& scan) {
                              CHECK(scan.index == scans++);
                              hits += static_cast<std::uint64_t>(std::count_if(
                                  scan.returns.begin(), scan.returns.end(),
                                  [](const api::Return& r) { return r.status == api::Status::hit; }));
                              return true;
                          });
        CHECK(result.digest == by_program["digest"]);
        CHECK(result.scans == scans);
        CHECK(hits == by_program["hits"]);
    }
    SECTION("a caster finds the same with little memory") {
        const api::City city(c.city);
        const api::Vec3 eye =
            api::Trajectory::read(c.trajectory).at(api::Trajectory::read(c.trajectory).begin_s())->position;
        std::vector<api::Ray> rays;
        for (int i = 0; i < 720; ++i) {
            const double a = i * 0.5 * 3.14159265358979 / 180;
            rays.push_back({eye, {static_cast<float>(std::cos(a)), static_cast<float>(std::sin(a)), -0.05f}});
        }
        const auto hits = api::Caster(city).cast(rays), again = api::Caster(city, 8 << 20).cast(rays);
        std::size_t found = 0;
        for (std::size_t i = 0; i < hits.size(); ++i) {
            found += hits[i].found;
            CHECK(hits[i].splat == again[i].splat);
            CHECK(hits[i].range_m == again[i].range_m);
        }
        CHECK(found > 100);
    }
    SECTION("a second build finds nothing to do; one from scratch is the same city") {
        api::BuildOptions options;
        const auto again = api::build(c.city, options);
        CHECK_FALSE(again.published);
        options.inputs = {c.drive};
        options.trajectory = c.trajectory;
        options.classes = "synthetic";
        const auto fresh = api::build(c.dir / "other", options);
        CHECK(fresh.published);
        CHECK(fresh.digest == c.built["digest"]);
    }
}

TEST_CASE("what the library throws has a message and the code of the program") {
    const test::TempDir dir;
    const auto code_of = [](const auto& work) {
        try {
            work();
        } catch (const api::Error& e) {
            return e.code();
        }
        return 0;
    };
    CHECK(code_of([&] { api::City city(dir / "nowhere"); }) == 78);
    CHECK(code_of([&] { api::Sensor::load("no-such"); }) == 78);
    CHECK(code_of([&] { api::Trajectory::read(dir / "no.tum"); }) == 74);
    CHECK(code_of([&] { api::Trajectory::of({}); }) == 2);
    CHECK_THROWS_WITH(api::build(dir / "city", {}), Contains("nothing to build from"));
}
