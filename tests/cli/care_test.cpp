#include "small_city.hpp"

namespace test = citysplat::test;
using nlohmann::json;
using test::Outcome;
using test::SmallCity;

TEST_CASE("shards of a build, published, are the city that one build makes") {
    const SmallCity d;
    const std::string city = d.dir / "sharded";
    auto build = d.build_command();
    build[1] = city;
    const auto shard = [&](const std::string& part) {
        auto command = build;
        command.insert(command.end(), {"--shard", part});
        return test::run_json(command);
    };
    CHECK(shard("1/2")["tiles_left"] == 0);
    CHECK(shard("2/2")["tiles_built"] == 0);
    CHECK(test::run_json({"publish", city}, {"digest"})["digest"] == d.built["digest"]);
    CHECK(test::run_json({"verify", city, "--deep"})["corrupt"].empty());
    CHECK(test::run_json(build)["tiles_built"] == 0);
    CHECK_THAT(test::citysplat({"build", city, "--shard", "auto"}).err, Catch::Contains("job array"));
}

TEST_CASE("plan, work and publish are the build of one process") {
    const SmallCity d;
    const std::string city = d.dir / "planned";
    auto plan = d.build_command();
    plan[0] = "plan";
    plan[1] = city;
    CHECK(test::citysplat({"work", city}).exit_code == 78);
    plan.insert(plan.end(), {"--price", "0.05"});
    const json planned = test::run_json(plan, {"plan", "tiles_planned", "core_seconds", "workers", "cost"});
    CHECK(planned["tiles_planned"] > 0);
    CHECK(test::run_json(plan)["plan"] == planned["plan"]);
    CHECK(test::citysplat({"publish", city}).exit_code == 75);
    CHECK(test::citysplat({"work", city, "--for", "0.000001s"}).exit_code == 75);
    CHECK(test::citysplat({"work", city, "--for", "soon"}).exit_code == 2);
    const json before = test::run_json({"status", city, "--plan"}, {"tiles_done", "eta_s", "tiles_failed"});
    CHECK(before["tiles_done"] == 0);
    CHECK(test::run_json({"work", city})["tiles_left"] == 0);
    CHECK(test::run_json({"status", city, "--plan"})["tiles_done"] == planned["tiles_planned"]);
    const json published = test::run_json({"publish", city}, {"digest", "published"});
    CHECK(published["digest"] == d.built["digest"]);
    CHECK(published["published"] == true);
    // A night without news.
    CHECK(test::run_json({"plan", city})["plan"].is_null());
    CHECK(test::run_json({"work", city})["plan"].is_null());
    CHECK(test::run_json({"publish", city})["published"] == false);
    CHECK(test::run_json({"status", city})["generation"] == 1);
    CHECK(test::run_json({"plan", city, "--discard"})["discarded"].is_null());
}

TEST_CASE("a directory is tried for what several processes need") {
    const SmallCity d;
    const json report =
        test::run_json({"selftest", "--filesystem", d.city}, {"safe", "checks", "filesystem"});
    CHECK(report["safe"] == true);
    CHECK(report["checks"].size() == 6);
    CHECK(test::run_json({"verify", d.city, "--deep"})["corrupt"].empty());
}

TEST_CASE("a city is packed into a file and comes out of it the same") {
    const SmallCity d;
    test::run_json({"pack", d.city, d.dir / "city.pack"});
    test::run_json({"unpack", d.dir / "city.pack", d.dir / "copy"});
    CHECK(test::run_json({"status", d.dir / "copy"})["digest"] == d.built["digest"]);
    CHECK(test::run_json({"verify", d.dir / "copy", "--deep"})["corrupt"].empty());
    CHECK(test::citysplat({"unpack", d.dir / "city.pack", d.dir / "copy"}).exit_code == 2);

    std::filesystem::resize_file(d.dir / "city.pack", std::filesystem::file_size(d.dir / "city.pack") - 100);
    CHECK(test::citysplat({"unpack", d.dir / "city.pack", d.dir / "torn"}).exit_code == 65);
    CHECK_FALSE(std::filesystem::exists(d.dir / "torn/catalog.sqlite"));
}

TEST_CASE("a lost catalog is rebuilt from the objects") {
    const SmallCity d;
    std::filesystem::remove(d.city + "/catalog.sqlite");
    const Outcome lost = test::citysplat({"status", d.city});
    CHECK(lost.exit_code == 78);
    test::run_json({"repair", d.city});
    CHECK(test::run_json({"status", d.city})["digest"] == d.built["digest"]);
    CHECK(test::run_json({"verify", d.city, "--deep"})["corrupt"].empty());
    CHECK(test::run_json(d.build_command())["tiles_built"] == 0);
}

TEST_CASE("an earlier generation comes back by one command, and gc frees what nobody needs") {
    const SmallCity d;
    auto basic = d.build_command();
    basic.insert(basic.end(), {"--method", "basic"});
    const json second = test::run_json(basic);
    CHECK(second["digest"] != d.built["digest"]);
    CHECK(second["generation"] == 2);
    const json history = test::run_json({"status", d.city, "--history"}, {"history"});
    CHECK(history["history"].size() == 2);

    test::run_json({"rollback", d.city});
    CHECK(test::run_json({"status", d.city})["digest"] == d.built["digest"]);
    CHECK(test::run_json({"status", d.city})["generation"] == 3);
    const json would = test::run_json({"gc", d.city, "--keep", "1", "--dry-run"});
    CHECK(would["freed_bytes"] > 0);
    CHECK(test::run_json({"gc", d.city, "--keep", "1"})["freed_bytes"] == would["freed_bytes"]);
    CHECK(test::run_json({"gc", d.city, "--keep", "1"})["freed_bytes"] == 0);
    CHECK(test::run_json({"verify", d.city, "--deep"})["corrupt"].empty());
    CHECK(test::citysplat({"rollback", d.city, "1"}).exit_code == 2);
}

TEST_CASE("a catalog of a newer version or another program is refused with a clear line") {
    const SmallCity d;
    const auto patch = [&](std::streamoff at, const std::string& bytes) {
        std::fstream file(d.city + "/catalog.sqlite", std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(at);
        file << bytes;
    };
    patch(60, std::string("\0\0\0\x09", 4));  // user_version in SQLite's header
    const Outcome newer = test::citysplat({"status", d.city});
    CHECK(newer.exit_code == 78);
    CHECK_THAT(newer.err, Catch::Contains("version"));
    patch(68, "WHO?");  // application_id
    CHECK(test::citysplat({"status", d.city}).exit_code == 78);
    patch(0, "no database");
    CHECK(test::citysplat({"status", d.city}).exit_code == 65);
}

TEST_CASE("a city remembers the parameters it was built with") {
    const SmallCity d;
    std::ofstream(d.dir / "coarse.toml") << "suppression = 0.9\ngroup_factor = [2, 1.5, 0.33, 0.25]\n";
    const json coarse = test::run_json({"build", d.city, "--params", d.dir / "coarse.toml"});
    CHECK(coarse["splats"] < d.built["splats"]);
    CHECK(coarse["tiles_reused"] == 0);
    const std::string changes = test::run_json({"status", d.city})["parameters"]["changes"];
    CHECK(changes == "group_factor = [2, 1.5, 0.33, 0.25]\nsuppression = 0.9\n");
    CHECK(test::run_json({"build", d.city})["tiles_built"] == 0);

    CHECK(test::run_json({"build", d.city, "--params", "default"})["digest"] == d.built["digest"]);
    CHECK_FALSE(test::run_json({"status", d.city})["parameters"].contains("changes"));

    std::ofstream(d.dir / "wrong.toml") << "suppresion = 0.9\n";
    const Outcome wrong = test::citysplat({"build", d.city, "--params", d.dir / "wrong.toml"});
    CHECK(wrong.exit_code == 78);
    CHECK_THAT(wrong.err, Catch::Contains("wrong.toml") && Catch::Contains("suppresion"));
    CHECK(test::citysplat({"build", d.city, "--params", d.dir / "nowhere.toml"}).exit_code == 74);
}
