#include "core/error.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/build/publisher.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

namespace {

Gate closed(std::vector<std::string>* asked = nullptr) {
    return [asked](const std::string& findings) {
        if (asked) asked->push_back(findings);
        return std::optional<std::string>("not today");
    };
}

Gate open(std::vector<std::string>* asked = nullptr) {
    return [asked](const std::string& findings) {
        if (asked) asked->push_back(findings);
        return std::optional<std::string>();
    };
}

PublishOptions asking(Gate gate) {
    PublishOptions options;
    options.gate = std::move(gate);
    return options;
}

PublishOptions accepting(const std::string& plan) {
    PublishOptions options;
    options.accept = plan;
    return options;
}

GenerationRow latest_of(const fs::path& city) {
    return *Catalog::open_to_read(CityPaths(city).catalog()).latest();
}

/// A city of one street, and a second street that is to come.
struct Streets {
    TempDir dir;
    fs::path a = dir / "a.cloud", b = dir / "b.cloud", city = dir / "city";
    BuildReport first;

    Streets() {
        write_cloud(a, street(1, 1000, 2000, 40, 2));
        write_cloud(b, street(2, 1030, 2000, 40, 2));
        first = build_toy(city, toy_options({a}));
    }
    BuildOptions both(Gate gate = {}) const {
        BuildOptions options = toy_options({a, b});
        options.gate = std::move(gate);
        return options;
    }
    Hash128 clean_digest() const { return build_toy(dir / "clean", both()).digest; }
};

}  // namespace

TEST_CASE("what a gate holds back is kept, and the next build without the gate publishes it") {
    const Streets s;
    const BuildReport held = build_toy(s.city, s.both(closed()));
    CHECK(held.held_back == "not today");
    CHECK_FALSE(held.published);
    CHECK(held.generation == 1);
    CHECK(held.tiles_built > 0);
    CHECK(latest_of(s.city).digest == s.first.digest);

    const BuildReport again = build_toy(s.city, s.both(closed()));
    CHECK(again.held_back);
    CHECK(again.tiles_built == 0);

    const BuildReport accepted = build_toy(s.city, s.both());
    CHECK(accepted.published);
    CHECK(accepted.generation == 2);
    CHECK(accepted.tiles_built == 0);
    CHECK(accepted.inputs_read == 0);
    CHECK(accepted.digest == held.digest);
    CHECK(accepted.digest == s.clean_digest());
}

TEST_CASE("a first build that a gate holds back leaves a city without a generation") {
    TempDir dir;
    const fs::path a = dir / "a.cloud", city = dir / "city";
    write_cloud(a, street(1, 1000, 2000, 40, 2));
    BuildOptions options = toy_options({a});
    options.gate = closed();
    CHECK(build_toy(city, options).generation == 0);
    CHECK_FALSE(Catalog::open_to_read(CityPaths(city).catalog()).latest());
    const BuildReport accepted = build_toy(city, toy_options({a}));
    CHECK(accepted.generation == 1);
    CHECK(accepted.tiles_built == 0);
}

TEST_CASE("a gate is asked about the points of the generation, measured again only when they changed") {
    const Streets s;
    const std::string of_a = latest_of(s.city).findings;
    CHECK(of_a.find("mean_intensity") != std::string::npos);
    CHECK(latest_of(s.city).findings_of == 1);

    // Without a gate nothing is measured: the findings are those of the first generation.
    BuildReport report = build_toy(s.city, s.both());
    CHECK(report.findings == of_a);
    CHECK(report.findings_of == 1);

    // With one they are measured, and that alone makes a generation.
    std::vector<std::string> asked;
    report = build_toy(s.city, s.both(open(&asked)));
    CHECK(report.published);
    CHECK(report.tiles_built == 0);
    REQUIRE(asked.size() == 1);
    CHECK(asked[0] != of_a);
    CHECK(report.findings == asked[0]);
    CHECK(latest_of(s.city).findings == asked[0]);
    CHECK(latest_of(s.city).findings_of == 3);
    CHECK(build_toy(s.dir / "other", s.both()).findings == asked[0]);

    // Nothing new: a closed gate has nothing to hold back.
    report = build_toy(s.city, s.both(closed()));
    CHECK_FALSE(report.held_back);
    CHECK_FALSE(report.published);
    CHECK(report.findings_of == 3);
}

TEST_CASE("findings go back with a generation and come back with a repaired catalog") {
    const Streets s;
    BuildOptions options = s.both();
    options.measure_drift = true;
    const BuildReport second = build_toy(s.city, options);
    CHECK(second.findings_of == 2);
    roll_back(s.city, std::nullopt);
    const GenerationRow back = latest_of(s.city);
    CHECK(back.id == 3);
    CHECK(back.findings_of == 1);
    CHECK(back.findings != second.findings);
    fs::remove(CityPaths(s.city).catalog());
    repair_city(s.city, CancelToken());
    CHECK(latest_of(s.city).findings == back.findings);
    CHECK(latest_of(s.city).findings_of == 1);
}

TEST_CASE("shards are held back by the gate of publish, and kept") {
    const Streets s;
    const auto build_shards = [&](const Gate& gate) {
        for (const std::uint32_t k : {1u, 2u}) shard_toy(s.city, s.both(gate), {k, 2});
    };
    build_shards({});
    CHECK_THROWS_WITH(publish_plan(s.city, asking(open())), Catch::Contains("nobody measured"));
    build_shards(open());
    std::vector<std::string> asked;
    const PublishReport held = publish_plan(s.city, asking(closed(&asked)));
    CHECK(held.held_back == "not today");
    CHECK_FALSE(held.published);
    CHECK(asked.size() == 1);
    CHECK(latest_of(s.city).id == 1);
    CHECK(publish_plan(s.city).digest == s.clean_digest());
    CHECK(latest_of(s.city).findings == asked[0]);
}

TEST_CASE("gates compare what is to come with the generation before") {
    const Streets s;
    const auto with = [&](const CandidateGate& gate) {
        BuildOptions options = s.both();
        options.gates = {gate};
        return build_toy(s.city, options);
    };
    BuildReport held = with(changed_tiles_gate(0.01));
    REQUIRE(held.gates.size() == 1);
    CHECK(held.gates[0].gate == "changed_tiles");
    CHECK(held.gates[0].holds());
    CHECK(held.held_back == held.gates[0].text);
    CHECK_FALSE(held.published);
    CHECK(latest_of(s.city).id == 1);
    const TileChanges changes =
        changes_between(Catalog::open_to_read(CityPaths(s.city).catalog()).tiles(1), [&] {
            build_toy(s.dir / "clean", s.both());
            return Catalog::open_to_read(CityPaths(s.dir / "clean").catalog()).tiles(1);
        }());
    CHECK(held.gates[0].value == Approx(static_cast<double>(changes.differing()) /
                                        static_cast<double>(changes.same + changes.changed + changes.added)));
    CHECK(changes.same > 0);
    CHECK(changes.added > 0);

    held = with(splat_change_gate(0.05));
    CHECK(held.held_back);
    CHECK(held.gates[0].value ==
          Approx(static_cast<double>(held.splats) / static_cast<double>(s.first.splats) - 1));
    const BuildReport passed = with(splat_change_gate(held.gates[0].value));
    CHECK(passed.published);
    CHECK_FALSE(passed.gates[0].holds());

    // Nothing new is not asked about, and neither is a first generation.
    BuildOptions first = toy_options({s.a});
    first.gates = {changed_tiles_gate(0)};
    CHECK(build_toy(s.dir / "new", first).published);
    CHECK(with(changed_tiles_gate(0)).gates.empty());
}

TEST_CASE("a plan that was held back stays open, says why, and is accepted by its name alone") {
    const Streets s;
    CHECK_THROWS_WITH(publish_plan(s.city, accepting("0123456789abcdef")), Catch::Contains("no plan"));
    plan_toy(s.city, s.both());
    work_toy(s.city);
    PublishOptions strict;
    strict.gates = {changed_tiles_gate(0)};
    const PublishReport held = publish_plan(s.city, strict);
    CHECK(held.held_back);
    CHECK_FALSE(held.published);
    CHECK(held.generation == 1);
    CHECK(latest_of(s.city).digest == s.first.digest);
    const ObjectStore store{CityPaths(s.city)};
    const auto open_plan = read_open_plan(store);
    REQUIRE(open_plan);
    CHECK(open_plan->name == held.plan);
    CHECK(PlanFolder(store, held.plan).held_back() == held.held_back);

    // gc keeps what was made, a second try is held again, and no other name lets it through.
    collect_garbage(s.city, Retention::newest(1), false);
    CHECK(publish_plan(s.city, strict).held_back);
    for (const std::string& other : {std::string("0123456789abcdef"), held.plan.hex().substr(0, 7)})
        CHECK_THROWS_AS(publish_plan(s.city, accepting(other)), UsageError);
    const PublishReport accepted = publish_plan(s.city, accepting(held.plan.hex().substr(0, 12)));
    CHECK(accepted.published);
    CHECK(accepted.digest == s.clean_digest());
    CHECK_FALSE(read_open_plan(store));
    CHECK_FALSE(fs::exists(CityPaths(s.city).plans() / held.plan.hex()));
}

TEST_CASE("inputs that vanish are forgotten when they are few, and refused when they are many") {
    TempDir dir;
    const fs::path city = dir / "city";
    std::vector<fs::path> files;
    for (int i = 0; i < 10; ++i) {
        files.push_back(dir / ("f" + std::to_string(i) + ".cloud"));
        write_cloud(files.back(), street(static_cast<std::uint64_t>(i + 1), 1000 + 5.0 * i, 2000, 5, 2));
    }
    const auto exactly = [&](std::vector<fs::path> inputs, double share) {
        BuildOptions options = toy_options(inputs);
        options.exactly_but = share;
        return options;
    };
    const Hash128 all = build_toy(city, toy_options(files)).digest;
    const auto some = [&](std::size_t count) { return std::vector(files.begin(), files.begin() + count); };

    const auto before = Catalog::open_to_read(CityPaths(city).catalog()).inputs(1).size();
    CHECK(before == 10);
    for (const std::size_t left : {0u, 5u, 8u})
        CHECK_THROWS_AS(build_toy(city, exactly(some(left), 0.1)), ConfigError);
    CHECK_THROWS_WITH(plan_toy(city, exactly(some(5), 0.1)), Catch::Contains("f9.cloud"));
    CHECK(latest_of(city).id == 1);
    CHECK(latest_of(city).digest == all);

    // All of them under other names: nothing has vanished.
    std::vector<fs::path> moved;
    for (const fs::path& file : files) {
        moved.push_back(dir / ("moved-" + file.filename().string()));
        fs::rename(file, moved.back());
    }
    BuildReport report = build_toy(city, exactly(moved, 0.1));
    CHECK(report.digest == all);
    CHECK(report.inputs == 10);
    CHECK(report.inputs_read == 0);
    CHECK(report.inputs_forgotten.empty());

    moved.pop_back();
    report = build_toy(city, exactly(moved, 0.1));
    CHECK(report.inputs_forgotten.size() == 1);
    CHECK(report.inputs == 9);
    CHECK(report.digest == build_toy(dir / "clean", toy_options(moved)).digest);
    // Nothing has vanished: nothing changes.
    CHECK_FALSE(build_toy(city, exactly(moved, 0)).published);
}
