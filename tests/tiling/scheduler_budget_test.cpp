#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "tiling/build/memory_scheduler.hpp"
#include "with_threads.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace citysplat;
using namespace citysplat::tiling;

namespace {

/// What the jobs at work hold together, counted by the jobs themselves.
class Ledger {
  public:
    void begin(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        used_ += bytes;
        peak_ = std::max(peak_, used_);
        most_at_once_ = std::max(most_at_once_, ++jobs_);
        if (jobs_ > 1) shared_peak_ = std::max(shared_peak_, used_);
        if (jobs_ > 1) company_.notify_all();
    }
    void end(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
        --jobs_;
    }
    /// Waits until two jobs have been at work together; gives up after a time that only a scheduler that
    /// never lets them needs.
    void wait_until_shared() {
        std::unique_lock lock(mutex_);
        company_.wait_for(lock, std::chrono::minutes(10), [&] { return most_at_once_ > 1; });
    }
    /// Lets others begin: until one has, or none seems to.
    void wait_for_company() {
        for (int i = 0; i < 2000; ++i) {
            {
                const std::lock_guard lock(mutex_);
                if (jobs_ > 1) return;
            }
            std::this_thread::yield();
        }
    }
    std::uint64_t peak() const { return peak_; }
    std::uint64_t shared_peak() const { return shared_peak_; }  ///< while several were at work
    int most_at_once() const { return most_at_once_; }

  private:
    std::mutex mutex_;
    std::condition_variable company_;
    std::uint64_t used_ = 0, peak_ = 0, shared_peak_ = 0;
    int jobs_ = 0, most_at_once_ = 0;
};

constexpr std::uint64_t kBudget = 1000;

}  // namespace

TEST_CASE("jobs at work together never hold more than the budget, and one above it runs alone") {
    CancelToken cancel;
    MemoryScheduler scheduler(kBudget, 4, cancel);
    std::vector<std::uint64_t> bytes{2500, 1001};
    for (std::uint64_t i = 0; i < 300; ++i) bytes.push_back(1 + rng::bits(5, i) % 600);
    Ledger ledger;
    std::vector<int> runs(bytes.size(), 0);
    const auto work = [&](std::size_t i, MemoryScheduler::Grant&) {
        ledger.begin(bytes[i]);
        ++runs[i];
        // Those that fit the budget have others beside them.
        if (bytes[i] <= kBudget) ledger.wait_until_shared();
        ledger.wait_for_company();
        ledger.end(bytes[i]);
    };
    test::with_threads(4, [&] { scheduler.run(bytes, work); });
    CHECK(std::all_of(runs.begin(), runs.end(), [](int n) { return n == 1; }));
    CHECK(ledger.shared_peak() <= kBudget);
    CHECK(ledger.peak() == 2500);
    CHECK(ledger.most_at_once() > 1);
    CHECK(ledger.most_at_once() <= 4);
    CHECK(scheduler.peak_bytes() == 2500);
}

TEST_CASE("a job that exchanges its grant waits until there is room for what it needs") {
    CancelToken cancel;
    MemoryScheduler scheduler(kBudget, 4, cancel);
    const std::vector<std::uint64_t> bytes(60, 100);
    Ledger ledger;
    scheduler.run(bytes, [&](std::size_t i, MemoryScheduler::Grant& grant) {
        const std::uint64_t needed = 100 + 10 * i;
        grant.exchange(needed);
        ledger.begin(needed);
        ledger.wait_for_company();
        ledger.end(needed);
    });
    CHECK(ledger.shared_peak() <= kBudget);
    CHECK(scheduler.peak_bytes() <= kBudget);
}

TEST_CASE("the first error of a job is thrown, and what had not begun is not run") {
    CancelToken cancel;
    MemoryScheduler scheduler(kBudget, 1, cancel);
    std::vector<std::uint64_t> bytes(50);
    std::iota(bytes.begin(), bytes.end(), 1);  // the largest begins
    std::set<std::size_t> ran;
    const auto work = [&](std::size_t i, MemoryScheduler::Grant&) {
        ran.insert(i);
        if (i == 40) throw std::runtime_error("job 40");
    };
    CHECK_THROWS_WITH(scheduler.run(bytes, work), "job 40");
    CHECK(ran == std::set<std::size_t>{40, 41, 42, 43, 44, 45, 46, 47, 48, 49});
    // It can be used again.
    ran.clear();
    bytes.resize(3);
    scheduler.run(bytes, work);
    CHECK(ran.size() == 3);
}

TEST_CASE("jobs are not begun once the user wants to stop") {
    CancelToken cancel;
    MemoryScheduler scheduler(kBudget, 2, cancel);
    const std::vector<std::uint64_t> bytes(100, 900);
    std::atomic<int> ran{0};
    CHECK_THROWS_AS(scheduler.run(bytes,
                                  [&](std::size_t, MemoryScheduler::Grant&) {
                                      if (++ran == 3) cancel.request();
                                  }),
                    Interrupted);
    CHECK(ran == 3);
}
