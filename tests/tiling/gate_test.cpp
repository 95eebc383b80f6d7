#include "core/error.hpp"
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
    CHECK_THROWS_WITH(publish_plan(s.city, {open()}), Catch::Contains("nobody measured"));
    build_shards(open());
    std::vector<std::string> asked;
    CHECK_THROWS_AS(publish_plan(s.city, {closed(&asked)}), HeldBackError);
    CHECK(asked.size() == 1);
    CHECK(latest_of(s.city).id == 1);
    CHECK(publish_plan(s.city).digest == s.clean_digest());
    CHECK(latest_of(s.city).findings == asked[0]);
}
