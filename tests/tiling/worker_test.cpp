#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

namespace {

/// A planned city and worker processes that can be killed.
struct Cluster {
    TempDir dir{memory_directory()};
    fs::path city = dir / "city", file = dir / "a.cloud", log = dir / "log";
    Hash128 digest;
    std::uint64_t planned = 0, widened = 0;

    Cluster() {
        write_cloud(file, street(1, 1000, 2000, 400, 1));
        auto options = toy_options({file});
        options.tile_size_m = 4;
        const BuildReport clean = build_toy(dir / "clean", options);
        digest = clean.digest;
        widened = clean.halo_widened;
        planned = plan_toy(city, options).open->plan.planned.size();
    }

    pid_t start(int pause_ms, int patience_ms) const {
        const std::string pause = std::to_string(pause_ms), patience = std::to_string(patience_ms);
        const pid_t child = ::fork();
        if (child == 0) {
            ::execl(CITYSPLAT_TOY_WORKER, "toy_worker", city.c_str(), log.c_str(), pause.c_str(),
                    patience.c_str(), nullptr);
            ::_exit(127);
        }
        REQUIRE(child > 0);
        return child;
    }
    static int wait(pid_t child) {
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::uint64_t made() const { return fs::file_size(log) / 5; }
    std::uint64_t wait_for(std::uint64_t tiles) const {
        while (!fs::exists(log) || made() < tiles) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return made();
    }
};

/// However busy the machine is, nobody is taken for slow.
constexpr int kPatient_ms = 250'000;

/// Kills workers at random moments and starts others. A batch that was not yet receipted is lost with each;
/// that a worker has ended is known at once, because all are on one host.
void check_kills(int workers, int kills, std::uint64_t seed) {
    CAPTURE(workers, kills, seed);
    const Cluster c;
    std::vector<pid_t> running;
    for (int i = 0; i < workers; ++i) running.push_back(c.start(2, kPatient_ms));
    int killed = 0;
    for (int i = 0; i < kills; ++i) {
        std::this_thread::sleep_for(std::chrono::microseconds(rng::bits(seed, 2 * i) % 60'000));
        pid_t& victim = running[rng::bits(seed, 2 * i + 1) % running.size()];
        ::kill(victim, SIGKILL);
        killed += Cluster::wait(victim) == 128 + SIGKILL;
        victim = c.start(2, kPatient_ms);
    }
    for (const pid_t worker : running) CHECK(Cluster::wait(worker) == 0);
    const PublishReport report = publish_plan(c.city);
    CHECK(report.digest == c.digest);
    constexpr std::uint64_t kBatch = 64;  // tiles that become durable together
    // A tile that needs a wider halo is begun a second time, or a third.
    CHECK(c.made() <= c.planned + 2 * c.widened + static_cast<std::uint64_t>(killed) * 3 * kBatch);
    CancelToken cancel;
    Progress progress;
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
}

}  // namespace

TEST_CASE("workers that are killed and started again give the city of a plain build") {
    check_kills(3, 8, 1);
}

TEST_CASE("two hundred kills of one, three and seven workers cost work and nothing else", "[slow]") {
    for (const int workers : {1, 3, 7}) check_kills(workers, 67, static_cast<std::uint64_t>(workers));
}

TEST_CASE("a worker that stands still for ever is done without, and may come back") {
    const Cluster c;
    const pid_t stopped = c.start(5, 1000);
    c.wait_for(3);
    ::kill(stopped, SIGSTOP);
    CHECK(Cluster::wait(c.start(0, 1000)) == 0);
    SECTION("after publish") { CHECK(publish_plan(c.city).digest == c.digest); }
    SECTION("before it") {}
    ::kill(stopped, SIGCONT);
    const int code = Cluster::wait(stopped);
    CHECK((code == 0 || code == 75));
    if (CityPaths(c.city).is_city() && Catalog::open_to_read(CityPaths(c.city).catalog()).history().empty())
        CHECK(publish_plan(c.city).digest == c.digest);
    CHECK(CityReader(c.city).generation().digest == c.digest);
}

TEST_CASE("care of the city beside its workers takes nothing from them") {
    const Cluster c;
    std::vector<pid_t> running;
    for (int i = 0; i < 2; ++i) running.push_back(c.start(1, kPatient_ms));
    CancelToken cancel;
    Progress progress;
    for (int i = 0; i < 5; ++i) {
        collect_garbage(c.city, Retention::newest(1), false);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    for (const pid_t worker : running) CHECK(Cluster::wait(worker) == 0);
    CHECK(publish_plan(c.city).digest == c.digest);
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
}
