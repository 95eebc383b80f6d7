#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "run_program.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <csignal>
#include <thread>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

namespace {

/// A city with one generation, and inputs for a second one. Each trial starts from a copy.
struct Crash {
    TempDir dir{memory_directory()};
    fs::path before = dir / "before", file_a = dir / "a.cloud", file_b = dir / "b.cloud";
    Hash128 digest_1, digest_2;
    int trials = 0;

    explicit Crash(double length = 30) {
        write_cloud(file_a, street(1, 1000, 2000, length, 3));
        write_cloud(file_b, street(2, 1000 + length / 2, 2000, length, 3));
        digest_1 = build_toy(before, toy_options({file_a})).digest;
        digest_2 = build_toy(dir / "clean", toy_options({file_a, file_b})).digest;
    }

    fs::path fresh_copy() {
        const fs::path city = dir / ("trial" + std::to_string(trials++));
        fs::copy(before, city, fs::copy_options::recursive);
        return city;
    }

    Outcome build(const fs::path& city, const std::string& kind, long at,
                  const std::string& operations = "all") {
        return run_program({"env", std::string("LD_PRELOAD=") + CITYSPLAT_FAULT_SHIM,
                            "ASAN_OPTIONS=verify_asan_link_order=0", "FAULT_DIR=" + city.string(),
                            "FAULT_KIND=" + kind, "FAULT_AT=" + std::to_string(at), "FAULT_OPS=" + operations,
                            "FAULT_LOG=" + (dir / "count").string(), CITYSPLAT_TOY_BUILD, city.string(),
                            file_a.string(), file_b.string()});
    }

    long count(const std::string& operations = "all") {
        const fs::path city = fresh_copy();
        REQUIRE(build(city, "count", 0, operations).exit_code == 0);
        fs::remove_all(city);
        return std::stol(read_text_file(dir / "count"));
    }

    /// Whatever happened: the city opens, is one of its two generations, has not a damaged byte, and the next
    /// build completes it.
    void check(const fs::path& city) {
        CancelToken cancel;
        Progress progress;
        {
            const CityReader reader(city);
            const auto& generation = reader.generation();
            REQUIRE((generation.id == 1 || generation.id == 2));
            REQUIRE(generation.digest == (generation.id == 1 ? digest_1 : digest_2));
            Hash128 digest;
            for (std::size_t i = 0; i < reader.tiles().size(); ++i) digest += reader.load(i).digest();
            REQUIRE(digest == generation.digest);
        }
        REQUIRE(verify_city(city, true, cancel, progress).corrupt.empty());
        REQUIRE(build_toy(city, toy_options({file_a, file_b})).digest == digest_2);
        REQUIRE(verify_city(city, true, cancel, progress).corrupt.empty());
        fs::remove_all(city);
    }

    void sweep(const std::string& kind, long stride) {
        const long operations = count();
        for (long at = 1; at <= operations; at += stride) {
            INFO(kind << " at operation " << at << " of " << operations);
            const fs::path city = fresh_copy();
            REQUIRE(build(city, kind, at).exit_code == 128 + SIGKILL);
            check(city);
        }
    }

    void fill_disk(long positions) {
        const long operations = count();
        for (long i = 0; i < positions; ++i) {
            const long at = 1 + operations * i / positions;
            INFO("disk full from operation " << at << " of " << operations);
            const fs::path city = fresh_copy();
            const Outcome outcome = build(city, "enospc", at);
            if (outcome.exit_code != 0) {  // the last operations write nothing
                REQUIRE(outcome.exit_code == 74);
                REQUIRE_THAT(outcome.err, Catch::Contains("full") || Catch::Contains("space"));
                REQUIRE(CityReader(city).generation().digest == digest_1);
            }
            check(city);
        }
    }

    void fail_syncs(long stride) {
        const long syncs = count("fsync");
        REQUIRE(syncs > 5);
        for (long at = 1; at <= syncs; at += stride) {
            INFO("fsync " << at << " of " << syncs << " fails");
            const fs::path city = fresh_copy();
            const Outcome outcome = build(city, "eio", at, "fsync");
            REQUIRE(outcome.exit_code == 74);
            REQUIRE(outcome.out.empty());
            check(city);
        }
    }
};

}  // namespace

TEST_CASE("a build killed at any file operation leaves a whole city, and the next one completes it") {
    Crash crash;
    crash.sweep("kill", 17);
    crash.sweep("power", 17);
}

TEST_CASE("a build killed at every single file operation leaves a whole city", "[slow]") {
    Crash crash;
    crash.sweep("kill", 1);
    crash.sweep("power", 1);
}

TEST_CASE("a full disk is said clearly and the last generation stays") { Crash().fill_disk(8); }

TEST_CASE("a disk full at fifty positions never costs a generation", "[slow]") { Crash().fill_disk(50); }

TEST_CASE("a build whose fsync fails never says it is done") { Crash().fail_syncs(7); }

TEST_CASE("no failing fsync of a build goes unnoticed", "[slow]") { Crash().fail_syncs(1); }

TEST_CASE("two hundred random kills of a larger build leave a whole city", "[slow]") {
    Crash crash(200);
    const long operations = crash.count();
    for (std::uint64_t i = 0; i < 200; ++i) {
        const long at = 1 + static_cast<long>(rng::bits(77, i) % static_cast<std::uint64_t>(operations));
        INFO("killed at operation " << at);
        const fs::path city = crash.fresh_copy();
        crash.build(city, i % 2 ? "kill" : "power", at);
        // Killed again while resuming, somewhere else.
        crash.build(city, "kill", 1 + at / 3);
        crash.check(city);
    }
}

namespace {

/// Builders race for one city, each adding an input of its own until it got through, while readers load it.
/// A round's inputs share tiles with each other and with the rounds before, but each round begins a little
/// further down the street: all in one place, the last builds would cost a hundred times the first.
void race(int rounds, int builders) {
    TempDir dir{memory_directory()};
    const fs::path city = dir / "city";
    write_cloud(dir / "first.cloud", street(1, 1000, 2000, 20, 3));
    build_toy(city, toy_options({dir / "first.cloud"}));
    std::vector<fs::path> all{dir / "first.cloud"};
    std::atomic<bool> stop{false};
    std::atomic<int> loaded{0}, wrong{0};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r)
        readers.emplace_back([&] {
            std::int64_t before = 0;
            do {
                const CityReader reader(city);
                const auto& generation = reader.generation();
                Hash128 digest;
                for (std::size_t i = 0; i < reader.tiles().size(); ++i) digest += reader.load(i).digest();
                if (digest != generation.digest || generation.id < before) ++wrong;
                before = generation.id;
                ++loaded;
            } while (!stop);
        });
    std::atomic<int> busy{0}, failed{0};
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::thread> threads;
        for (int b = 0; b < builders; ++b) {
            const fs::path file = dir / ("r" + std::to_string(round) + "b" + std::to_string(b) + ".cloud");
            write_cloud(file, street(static_cast<std::uint64_t>(100 * round + b), 1000 + 8 * round + 3 * b,
                                     2000, 4, 3));
            all.push_back(file);
            threads.emplace_back([&, file] {
                for (;;) {
                    const Outcome outcome = run_program({CITYSPLAT_TOY_BUILD, city.string(), file.string()});
                    if (outcome.exit_code == 0) return;
                    if (outcome.exit_code != 75) {
                        ++failed;
                        return;
                    }
                    ++busy;
                    // Each start of a program that is refused takes processor time from the one at work.
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                }
            });
        }
        for (std::thread& t : threads) t.join();
        try {
            collect_garbage(city, Retention::newest(2), false);
        } catch (const BusyError&) {
            ++failed;
        }
    }
    stop = true;
    for (std::thread& t : readers) t.join();
    INFO(loaded << " loads by readers, " << busy << " builders sent away");
    CHECK(failed == 0);
    CHECK(wrong == 0);
    CHECK(loaded > 0);
    CHECK(CityReader(city).generation().digest == build_toy(dir / "clean", toy_options(all)).digest);
}

}  // namespace

TEST_CASE("racing builders lose nothing and readers always see one whole generation") { race(1, 4); }

TEST_CASE("eight builders race for a hundred rounds", "[slow]") { race(100, 8); }

TEST_CASE("a second builder is told at once who holds the city") {
    TempDir dir{memory_directory()};
    write_cloud(dir / "a.cloud", street(1, 1000, 2000, 20, 3));
    build_toy(dir / "city", toy_options({dir / "a.cloud"}));
    const CityLock lock = CityLock::builder(CityPaths(dir / "city"), "build");
    const Outcome outcome = run_program({CITYSPLAT_TOY_BUILD, (dir / "city").string()});
    CHECK(outcome.exit_code == 75);
    CHECK_THAT(outcome.err, Catch::Contains("citysplat build, process " + std::to_string(::getpid())));
    CHECK_NOTHROW(CityReader(dir / "city"));
}
