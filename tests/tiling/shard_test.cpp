#include "core/error.hpp"
#include "tiling/build/shards.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace {

struct Shards {
    TempDir dir{memory_directory()};
    std::filesystem::path city = dir / "city", file_a = dir / "a.cloud", file_b = dir / "b.cloud";
    Shards() {
        write_cloud(file_a, street(1, 1000, 2000, 90, 3));
        write_cloud(file_b, street(2, 1060, 2010, 60, 3));
    }
    BuildReport build(std::uint32_t k, std::uint32_t n,
                      const std::vector<std::filesystem::path>& inputs) const {
        auto options = toy_options(inputs);
        options.shard = Shard{k, n};
        // Machines differ: the plan of the first shard counts.
        options.most_tile_points = k == 1 ? 1500 : 100'000;
        options.threads = 1;
        return build_toy(city, options);
    }
};

}  // namespace

TEST_CASE("shards that run at the same time and one publish give the city of a plain build") {
    Shards s;
    const Hash128 digest = build_toy(s.dir / "plain", toy_options({s.file_a, s.file_b})).digest;
    std::vector<std::thread> threads;
    for (std::uint32_t k = 1; k <= 3; ++k)
        threads.emplace_back([&s, k] { s.build(k, 3, {s.file_a, s.file_b}); });
    for (std::thread& t : threads) t.join();
    CHECK_THROWS_WITH(CityReader(s.city), Catch::Contains("nothing has been built yet"));
    const PublishReport report = publish_shards(s.city);
    CHECK(report.generation == 1);
    CHECK(report.shards == 3);
    CHECK(report.digest == digest);
    CHECK(CityReader(s.city).generation().digest == digest);
    CancelToken cancel;
    Progress progress;
    CHECK(verify_city(s.city, true, cancel, progress).corrupt.empty());
    CHECK_FALSE(build_toy(s.city, toy_options()).published);
    CHECK_THROWS_AS(publish_shards(s.city), ConfigError);
}

TEST_CASE("publish names the shards that are missing and leaves the city alone") {
    Shards s;
    const BuildReport first = build_toy(s.city, toy_options({s.file_a}));
    CHECK_THROWS_AS(publish_shards(s.city), ConfigError);
    const BuildReport part = s.build(2, 3, {s.file_b});
    CHECK_FALSE(part.published);
    CHECK_THROWS_WITH(publish_shards(s.city), Catch::Contains("1/3 3/3"));
    s.build(1, 3, {s.file_b});
    s.build(3, 3, {s.file_b});
    CHECK(CityReader(s.city).generation().digest == first.digest);
    CHECK(publish_shards(s.city).digest ==
          build_toy(s.dir / "plain", toy_options({s.file_a, s.file_b})).digest);
}

TEST_CASE("shards of an older plan are not published") {
    Shards s;
    build_toy(s.city, toy_options({s.file_a}));
    s.build(1, 1, {s.file_b});
    write_cloud(s.dir / "c.cloud", street(7, 1010, 2000, 20, 3));
    build_toy(s.city, toy_options({s.dir / "c.cloud"}));
    CHECK_THROWS_WITH(publish_shards(s.city), Catch::Contains("newer generation"));
}

TEST_CASE("plans and shares are never taken for generations") {
    Shards s;
    const BuildReport first = build_toy(s.city, toy_options({s.file_a}));
    s.build(1, 2, {s.file_b});
    s.build(2, 2, {s.file_b});
    Hash128 digest = first.digest;
    const bool published = GENERATE(false, true), lost = GENERATE(false, true);
    INFO((published ? "published, " : "not published, ") << (lost ? "catalog lost" : "catalog there"));
    if (published) digest = publish_shards(s.city).digest;
    const std::int64_t latest = CityReader(s.city).generation().id;
    if (lost) std::filesystem::remove(CityPaths(s.city).catalog());
    const RepairReport repaired = repair_city(s.city, CancelToken());
    CHECK(repaired.latest == latest);
    CHECK(repaired.generations == static_cast<std::uint64_t>(latest));
    CHECK(CityReader(s.city).generation().digest == digest);
    // What the shards have built can still be published.
    if (latest == 1) CHECK(publish_shards(s.city).generation == 2);
    CancelToken cancel;
    Progress progress;
    CHECK(verify_city(s.city, true, cancel, progress).corrupt.empty());
}

TEST_CASE("a share is taken once and must be that of its plan and shard") {
    Shards s;
    build_toy(s.city, toy_options({s.file_a}));
    s.build(1, 2, {s.file_b});
    s.build(2, 2, {s.file_b});
    const auto shares = CityPaths(s.city).shards();
    std::filesystem::copy_file(shares / "1-of-2", shares / "2-of-2",
                               std::filesystem::copy_options::overwrite_existing);
    CHECK_THROWS_AS(publish_shards(s.city), CorruptionError);
    CHECK_THROWS_WITH(publish_shards(s.city), Catch::Contains("build shard 2/2 again"));
    CHECK(CityReader(s.city).generation().id == 1);
    s.build(2, 2, {s.file_b});
    CHECK(publish_shards(s.city).digest ==
          build_toy(s.dir / "plain", toy_options({s.file_a, s.file_b})).digest);
}

TEST_CASE("gc leaves what shards have built for the next publish, and foreign files in shards stay") {
    Shards s;
    build_toy(s.city, toy_options({s.file_a}));
    const auto note = CityPaths(s.city).shards() / "note-of-2";
    write_file_atomically(note, {});
    s.build(1, 2, {s.file_b});
    s.build(2, 2, {s.file_b});
    collect_garbage(s.city, 1, false);
    CHECK(publish_shards(s.city).digest ==
          build_toy(s.dir / "plain", toy_options({s.file_a, s.file_b})).digest);
    CHECK(std::filesystem::exists(note));
    CancelToken cancel;
    Progress progress;
    CHECK(verify_city(s.city, true, cancel, progress).corrupt.empty());
}

TEST_CASE("a builder and shards exclude each other") {
    Shards s;
    build_toy(s.city, toy_options({s.file_a}));
    {
        const CityLock shard = CityLock::shard(CityPaths(s.city)), other = CityLock::shard(CityPaths(s.city));
        CHECK_THROWS_AS(build_toy(s.city, toy_options()), BusyError);
    }
    const CityLock builder = CityLock::builder(CityPaths(s.city), "build");
    CHECK_THROWS_AS(s.build(1, 2, {s.file_b}), BusyError);
}
