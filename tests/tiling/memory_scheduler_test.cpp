#include "tiling/build/memory_scheduler.hpp"

#include "core/error.hpp"
#include "with_threads.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

using namespace citysplat;
using namespace citysplat::tiling;

namespace {

/// Things that happened, in order, and a way to wait for them.
class Events {
  public:
    void happened(const std::string& what) {
        const std::lock_guard lock(mutex_);
        all_.push_back(what);
        changed_.notify_all();
    }
    /// Whether it happens; gives up after a time that only a scheduler that never does it needs.
    bool comes(const std::string& what) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::minutes(10),
                                 [&] { return std::find(all_.begin(), all_.end(), what) != all_.end(); });
    }
    std::vector<std::string> all() const { return all_; }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> all_;
};

}  // namespace

TEST_CASE("large jobs start first") {
    const CancelToken cancel;
    MemoryScheduler scheduler(100, 1, cancel);
    std::vector<std::size_t> order;
    const std::vector<std::uint64_t> bytes{20, 90, 40, 60};
    scheduler.run(bytes, [&](std::size_t i, MemoryScheduler::Grant&) { order.push_back(i); });
    CHECK(order == std::vector<std::size_t>{1, 3, 2, 0});
}

TEST_CASE("a small job goes ahead of a large one that does not fit") {
    const CancelToken cancel;
    MemoryScheduler scheduler(100, 2, cancel);
    const std::vector<std::uint64_t> bytes{60, 70, 30};
    Events events;
    bool overtaken = false;
    const auto work = [&](std::size_t i, MemoryScheduler::Grant&) {
        events.happened(std::to_string(bytes[i]));
        // While that of 70 bytes runs, the one of 60 does not fit, but that of 30 does.
        if (bytes[i] == 70) overtaken = events.comes("30");
    };
    test::with_threads(2, [&] { scheduler.run(bytes, work); });
    CHECK(overtaken);
    // Those of 70 and 30 bytes run beside each other, so either may speak first; that of 60 waits for the end
    // of 70.
    REQUIRE(events.all().size() == 3);
    CHECK(events.all().back() == "60");
}

TEST_CASE("who waits for memory notices that the user wants to stop") {
    CancelToken cancel;
    MemoryScheduler scheduler(100, 2, cancel);
    const std::vector<std::uint64_t> bytes{50, 50};
    Events events;
    bool noticed_while_held = false;
    const auto work = [&](std::size_t i, MemoryScheduler::Grant& grant) {
        if (i == 0) {
            // Holds its bytes until the other one, which waits for more than there is, has noticed.
            events.happened("held");
            if (events.comes("about to wait")) cancel.request();
            noticed_while_held = events.comes("noticed");
            return;
        }
        if (!events.comes("held")) return;
        events.happened("about to wait");
        try {
            grant.exchange(90);
        } catch (const Interrupted&) {
            events.happened("noticed");
            throw;
        }
        events.happened("got it");
    };
    test::with_threads(2, [&] { CHECK_THROWS_AS(scheduler.run(bytes, work), Interrupted); });
    CHECK(noticed_while_held);
    CHECK(events.all() == std::vector<std::string>{"held", "about to wait", "noticed"});

    int started = 0;
    CHECK_THROWS_AS(scheduler.run(bytes, [&](std::size_t, MemoryScheduler::Grant&) { ++started; }),
                    Interrupted);
    CHECK(started == 0);
}
