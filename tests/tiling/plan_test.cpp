#include "core/error.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <thread>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

namespace {

struct Plans {
    TempDir dir{memory_directory()};
    fs::path city = dir / "city", file_a = dir / "a.cloud", file_b = dir / "b.cloud";
    Plans() {
        write_cloud(file_a, street(1, 1000, 2000, 90, 3));
        write_cloud(file_b, street(2, 1060, 2010, 60, 3));
    }
    Hash128 clean_digest() const { return build_toy(dir / "plain", toy_options({file_a, file_b})).digest; }
    void check_whole() const {
        CancelToken cancel;
        Progress progress;
        const VerifyReport report = verify_city(city, true, cancel, progress);
        CHECK(report.corrupt.empty());
    }
    std::vector<fs::path> receipts() const {
        std::vector<fs::path> found;
        const auto plan = name_of_open_plan(CityPaths(city));
        REQUIRE(plan);
        for (const auto& entry : fs::directory_iterator(CityPaths(city).plans() / plan->hex() / "done"))
            found.push_back(entry.path());
        return found;
    }
};

/// Makes tiles of even numbers only.
class Choosy final : public TileProcessor {
  public:
    Calibration calibrate(const RegionReader& reader, const CancelToken& cancel,
                          Progress& progress) const override {
        return toy_.calibrate(reader, cancel, progress);
    }
    void set_calibration(const Calibration& calibration) override { toy_.set_calibration(calibration); }
    Hash128 parameters_key() const override { return toy_.parameters_key(); }
    std::int64_t initial_halo_steps() const override { return toy_.initial_halo_steps(); }
    std::size_t estimated_bytes(std::uint64_t points) const override { return toy_.estimated_bytes(points); }
    TileOutput process(Region region, const CancelToken& cancel) const override {
        if (region.core.min_x / (region.core.max_x - region.core.min_x) % 2 != 0)
            throw InputError("an odd tile");
        return toy_.process(std::move(region), cancel);
    }

  private:
    ToyProcessor toy_;
};

}  // namespace

TEST_CASE("workers that run at the same time and one publish give the city of a plain build") {
    Plans p;
    const PlanReport plan = plan_toy(p.city, toy_options({p.file_a, p.file_b}));
    REQUIRE(plan.open);
    std::vector<std::thread> threads;
    std::vector<WorkReport> reports(3);
    for (WorkReport& report : reports) threads.emplace_back([&p, &report] { report = work_toy(p.city); });
    for (std::thread& t : threads) t.join();
    std::uint64_t built = 0;
    for (const WorkReport& report : reports) {
        CHECK(report.tiles_left == 0);
        built += report.made.tiles_built;
    }
    CHECK(built >= plan.open->plan.planned.size() / 2);
    CHECK_THROWS_WITH(CityReader(p.city), Catch::Contains("nothing has been built yet"));
    const PublishReport report = publish_plan(p.city);
    CHECK(report.published);
    CHECK(report.generation == 1);
    CHECK(report.digest == p.clean_digest());
    CHECK(CityReader(p.city).generation().digest == report.digest);
    p.check_whole();
    CHECK_FALSE(build_toy(p.city, toy_options()).published);
}

TEST_CASE("shards of the same request share one plan, and the first may do all of it") {
    Plans p;
    auto options = toy_options({p.file_a, p.file_b});
    options.most_tile_points = 1500;
    const WorkReport first = shard_toy(p.city, options, {2, 3});
    CHECK(first.made.tiles_built > 0);
    options.most_tile_points = 100'000;  // machines differ: the plan of the first counts
    const WorkReport second = shard_toy(p.city, options, {1, 3});
    CHECK(second.plan == first.plan);
    CHECK(second.made.tiles_built == 0);
    CHECK(publish_plan(p.city).digest == p.clean_digest());
}

TEST_CASE("a plan is frozen: inputs that come, change and go meanwhile are for the next one") {
    Plans p;
    plan_toy(p.city, toy_options({p.file_a, p.file_b}));
    const Hash128 digest = p.clean_digest();
    write_cloud(p.file_a, street(9, 1000, 2000, 90, 3));
    fs::remove(p.file_b);
    work_toy(p.city);
    CHECK(publish_plan(p.city).digest == digest);
    auto next = toy_options();
    next.remove = {p.file_b};
    CHECK(plan_toy(p.city, next).open);
    work_toy(p.city);
    CHECK(publish_plan(p.city).digest == build_toy(p.dir / "later", toy_options({p.file_a})).digest);
}

TEST_CASE("a worker needs neither the catalog nor the inputs nor a lock") {
    Plans p;
    plan_toy(p.city, toy_options({p.file_a, p.file_b}));
    const CityLock builder = CityLock::builder(CityPaths(p.city), "build");
    const fs::path aside = p.dir / "aside";
    fs::create_directories(aside);
    fs::rename(CityPaths(p.city).catalog(), aside / "catalog");
    fs::rename(p.file_a, aside / "a");
    fs::rename(p.file_b, aside / "b");
    CHECK(work_toy(p.city).tiles_left == 0);
    fs::rename(aside / "catalog", CityPaths(p.city).catalog());
    fs::rename(aside / "a", p.file_a);
    fs::rename(aside / "b", p.file_b);
}

TEST_CASE("work that stops in the middle is continued, not repeated") {
    Plans p;
    plan_toy(p.city, toy_options({p.file_a, p.file_b}));
    WorkOptions no_time;
    no_time.until = std::chrono::steady_clock::now();
    const WorkReport none = work_toy(p.city, no_time);
    CHECK(none.tiles_left == none.tiles_planned);
    CHECK_THROWS_AS(publish_plan(p.city), BusyError);
    const WorkReport all = work_toy(p.city);
    CHECK(all.tiles_left == 0);
    for (const fs::path& receipt : p.receipts()) fs::remove(receipt), static_cast<void>(0);
    CHECK_THROWS_WITH(publish_plan(p.city), Catch::Contains("not made yet"));
    CHECK(work_toy(p.city).tiles_left == 0);
    CHECK(publish_plan(p.city).digest == p.clean_digest());
}

TEST_CASE("a build whose time is up publishes no city with holes") {
    Plans p;
    build_toy(p.city, toy_options({p.file_a}));
    BuildOptions options = toy_options({p.file_b});
    options.until = std::chrono::steady_clock::now();
    const BuildReport stopped = build_toy(p.city, options);
    CHECK_FALSE(stopped.tiles_not_begun.empty());
    CHECK_FALSE(stopped.published);
    CHECK(CityReader(p.city).generation().id == 1);
    const fs::path in_time = p.dir / "in time";
    build_toy(in_time, toy_options({p.file_a}));
    CHECK(build_toy(p.city, toy_options({p.file_b})).digest ==
          build_toy(in_time, toy_options({p.file_b})).digest);
}

TEST_CASE("what workers of an older plan have made is used by the next one") {
    Plans p;
    build_toy(p.city, toy_options({p.file_a}));
    plan_toy(p.city, toy_options({p.file_b}));
    const WorkReport worked = work_toy(p.city);
    CHECK(worked.made.tiles_built > 2);
    write_cloud(p.dir / "c.cloud", street(7, 1010, 2000, 5, 3));
    SECTION("more inputs are planned") {}
    SECTION("gc ran meanwhile") { collect_garbage(p.city, Retention::newest(1), false); }
    SECTION("somebody built meanwhile") {
        build_toy(p.city, toy_options({p.dir / "c.cloud"}));
        CHECK_THROWS_WITH(publish_plan(p.city), Catch::Contains("newer generation"));
    }
    plan_toy(p.city, toy_options({p.file_b, p.dir / "c.cloud"}));
    const WorkReport again = work_toy(p.city);
    CHECK(again.made.tiles_built < worked.made.tiles_built);
    CHECK(publish_plan(p.city).digest ==
          build_toy(p.dir / "all", toy_options({p.file_a, p.file_b, p.dir / "c.cloud"})).digest);
    p.check_whole();
}

TEST_CASE("planning the same work again keeps the plan and what was done for it") {
    Plans p;
    const PlanReport first = plan_toy(p.city, toy_options({p.file_a}));
    work_toy(p.city);
    const PlanReport again = plan_toy(p.city, toy_options({p.file_a}));
    REQUIRE(again.open);
    CHECK(again.joined);
    CHECK(again.open->name == first.open->name);
    CHECK(work_toy(p.city).made.tiles_built == 0);
}

TEST_CASE("nothing to do makes no plan and no generation") {
    Plans p;
    build_toy(p.city, toy_options({p.file_a}));
    CHECK_FALSE(plan_toy(p.city, toy_options()).open);
    CHECK_FALSE(work_toy(p.city).plan);
    const PublishReport report = publish_plan(p.city);
    CHECK_FALSE(report.published);
    CHECK(report.generation == 1);
    CHECK(CityReader(p.city).generation().id == 1);
    SECTION("a copy of an input brings no splat, but is an input") {
        fs::copy_file(p.file_a, p.dir / "copy.cloud");
        CHECK(plan_toy(p.city, toy_options({p.dir / "copy.cloud"})).open);
        work_toy(p.city);
        CHECK(publish_plan(p.city).published);
    }
    SECTION("what was planned and undone is as before") {
        CHECK(plan_toy(p.city, toy_options({p.file_b})).open);
        CHECK_FALSE(plan_toy(p.city, toy_options()).open);
        CHECK_FALSE(publish_plan(p.city).published);
    }
}

TEST_CASE("gc leaves what an open plan needs, and foreign files in plans stay") {
    Plans p;
    build_toy(p.city, toy_options({p.file_a}));
    const auto note = CityPaths(p.city).plans() / "note";
    write_file_atomically(note, {});
    const auto remainder = CityPaths(p.city).plans() / "current.tmp-1-2-3";
    write_file_atomically(remainder, {});
    plan_toy(p.city, toy_options({p.file_b}));
    CHECK_FALSE(fs::exists(remainder));
    WorkOptions half;
    collect_garbage(p.city, Retention::newest(1), false);
    work_toy(p.city);
    // A worker is about to leave a receipt for this one.
    ObjectStore store{CityPaths(p.city)};
    auto writer = store.create();
    const std::string text(magic_of(ObjectKind::payload).begin(), magic_of(ObjectKind::payload).end());
    writer.append(std::as_bytes(std::span(text.data(), text.size())));
    const Hash128 young = writer.finish();
    store.flush();
    auto unfinished = store.create();
    collect_garbage(p.city, Retention::newest(1), false);
    CHECK(store.size_of(young));
    unfinished.append(std::as_bytes(std::span(text.data(), text.size())));
    static_cast<void>(unfinished.finish());
    repair_city(p.city, CancelToken());
    CHECK_NOTHROW(store.flush());
    CHECK(publish_plan(p.city).digest == p.clean_digest());
    collect_garbage(p.city, Retention::newest(1), false);
    CHECK_FALSE(store.size_of(young));
    CHECK(fs::exists(note));
    p.check_whole();
}

TEST_CASE("a tile that was lost before publish is made again") {
    Plans p;
    const PlanReport plan = plan_toy(p.city, toy_options({p.file_a, p.file_b}));
    work_toy(p.city);
    const ObjectStore store{CityPaths(p.city)};
    const auto objects = PlanFolder(store, plan.open->name).receipt_objects();
    REQUIRE(!objects.empty());
    const auto made = read_receipt(store, objects[0]).made;
    REQUIRE(!made.empty());
    store.remove(made[0].object.value());
    const bool unreadable_receipt = GENERATE(false, true);
    CAPTURE(unreadable_receipt);
    if (unreadable_receipt) {
        const std::string nothing = Hash128{1, 2}.hex(), text = plan.open->name.hex() + "\n" + nothing + "\n";
        write_file_atomically(
            CityPaths(p.city).plans() / plan.open->name.hex() / "done" / ("receipt-" + nothing),
            std::as_bytes(std::span(text.data(), text.size())));
    }
    CHECK_THROWS_AS(publish_plan(p.city), BusyError);
    CHECK(work_toy(p.city).made.tiles_built > 0);
    CHECK(publish_plan(p.city).digest == p.clean_digest());
    p.check_whole();
}

TEST_CASE("the state of a plan is told to who cannot write in the city") {
    Plans p;
    const PlanReport plan = plan_toy(p.city, toy_options({p.file_a, p.file_b}));
    REQUIRE(plan.open);
    const ObjectStore store{CityPaths(p.city)};
    PlanFolder folder(store, plan.open->name);
    const auto claim = folder.claim(0, 0);
    fs::remove_all(store.paths().temporary());
    const PlanStatus status = status_of(store, *plan.open);
    REQUIRE(status.claims.size() == 1);
    CHECK(status.claims[0].age_s < 60);
}

TEST_CASE("costs that cannot be remembered are no failure") {
    Plans p;
    plan_toy(p.city, toy_options({p.file_a, p.file_b}));
    const CityPaths paths(p.city);
    fs::create_directories(paths.plans() / "costs" / "in the way");
    CHECK_NOTHROW(keep_costs(paths, {1, 1'000'000, 1'000'000}));
}

TEST_CASE("what nobody has measured is guessed from points and tiles") {
    const auto guess = [](std::size_t tiles, std::uint64_t points_each) {
        std::vector<PlannedTile> planned(tiles);
        for (PlannedTile& tile : planned) tile.points_at_most = points_each;
        const TileCosts costs = usual_costs(planned);
        return static_cast<double>(tiles) * costs.seconds_of(points_each);
    };
    CHECK(guess(10, 1'000'000) == Approx(13).epsilon(0.01));
    CHECK(guess(10'000, 560) == Approx(14.3).epsilon(0.01));
}

TEST_CASE("tiles that cannot be made are named, not tried for ever, and can keep their old state") {
    Plans p;
    const Hash128 before = build_toy(p.city, toy_options({p.file_a})).digest;
    plan_toy(p.city, toy_options({p.file_b}));
    CancelToken cancel;
    Progress progress;
    const auto work = [&] {
        return work_on_plan(
            p.city, [](const GenerationRow&) { return std::make_unique<Choosy>(); }, {}, cancel, progress);
    };
    const WorkReport report = work();
    REQUIRE(!report.made.failures.empty());
    CHECK(report.tiles_left == 0);  // for this host
    CHECK_THAT(report.made.failures[0].message, Catch::Contains("an odd tile"));
    CHECK(work().made.tiles_checked == 0);
    CHECK_THROWS_WITH(publish_plan(p.city),
                      Catch::Contains("an odd tile") && Catch::Contains(report.made.failures[0].tile.text()));
    CHECK(CityReader(p.city).generation().digest == before);
    SECTION("old tiles are taken only where there are some") {
        PublishOptions options;
        options.keep_old_for_failed = true;
        CHECK_THROWS_WITH(publish_plan(p.city, options), Catch::Contains("an odd tile"));
    }
    SECTION("a tile that kept its old state is made by the next build that can") {
        write_cloud(p.file_a, street(3, 1000, 2000, 90, 3));
        plan_toy(p.city, toy_options());
        REQUIRE(!work().made.failures.empty());
        PublishOptions options;
        options.keep_old_for_failed = true;
        const PublishReport kept = publish_plan(p.city, options);
        REQUIRE(kept.published);
        REQUIRE(!kept.kept_old.empty());
        p.check_whole();
        const Hash128 clean = build_toy(p.dir / "clean", toy_options({p.file_a})).digest;
        REQUIRE(kept.digest != clean);
        SECTION("by a build") { CHECK(build_toy(p.city, toy_options()).digest == clean); }
        SECTION("by workers") {
            CHECK(plan_toy(p.city, toy_options()).open);
            work_toy(p.city);
            CHECK(publish_plan(p.city).digest == clean);
        }
        CHECK_FALSE(build_toy(p.city, toy_options()).published);
    }
    SECTION("who plans anew has mended the reason, and this host tries again") {
        CHECK(plan_toy(p.city, toy_options({p.file_b})).joined);
        CHECK(work_toy(p.city).made.tiles_built > 0);
        CHECK(publish_plan(p.city).digest == p.clean_digest());
    }
    SECTION("another host succeeds") {
        const fs::path failed =
            CityPaths(p.city).plans() / name_of_open_plan(CityPaths(p.city))->hex() / "failed";
        for (const auto& entry : fs::directory_iterator(failed)) {
            std::string text = read_text_file(entry.path());
            text.replace(text.find('\n') + 1, host_name().size(), "elsewhere");
            std::ofstream(entry.path()) << text;
        }
        CHECK(work_toy(p.city).made.tiles_built > 0);
        CHECK(publish_plan(p.city).digest == p.clean_digest());
    }
}

TEST_CASE("a worker with other rules than the planner's is refused") {
    Plans p;
    plan_toy(p.city, toy_options({p.file_a}));
    CancelToken cancel;
    Progress progress;
    CHECK_THROWS_WITH(work_on_plan(
                          p.city, [](const GenerationRow&) { return std::make_unique<ToyProcessor>(0.7); },
                          {}, cancel, progress),
                      Catch::Contains("other rules"));
}

TEST_CASE("a damaged name of the open plan is an error, not an empty plan") {
    Plans p;
    build_toy(p.city, toy_options({p.file_a}));
    plan_toy(p.city, toy_options({p.file_b}));
    std::ofstream(CityPaths(p.city).plans() / "current") << "what";
    CHECK_THROWS_AS(work_toy(p.city), CorruptionError);
    CHECK_THROWS_AS(publish_plan(p.city), CorruptionError);
    CHECK_THROWS_AS(collect_garbage(p.city, Retention::newest(1), false), CorruptionError);
}
