#include "tiling/build/memory_scheduler.hpp"

#include "core/error.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

using namespace citysplat;
using namespace citysplat::tiling;

namespace {

void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

}  // namespace

TEST_CASE("large jobs start first, and smaller ones go ahead of those that do not fit") {
    const CancelToken cancel;
    MemoryScheduler scheduler(100, 1, cancel);
    std::vector<std::size_t> order;
    const std::vector<std::uint64_t> bytes{20, 90, 40, 60};
    scheduler.run(bytes, [&](std::size_t i, MemoryScheduler::Grant&) { order.push_back(i); });
    CHECK(order == std::vector<std::size_t>{1, 3, 2, 0});

    // While the one of 70 bytes runs, the other does not fit, but that of 30 does.
    MemoryScheduler two(100, 2, cancel);
    const std::vector<std::uint64_t> more{70, 70, 30};
    std::atomic<bool> small_ran{false};
    std::atomic<int> large_begun{0};
    bool small_was_first = false;
    two.run(more, [&](std::size_t i, MemoryScheduler::Grant&) {
        if (i == 2) {
            small_was_first = large_begun < 2;
            small_ran = true;
        } else if (++large_begun == 1) {
            for (int tries = 0; tries < 500 && !small_ran; ++tries) wait_a_little();
        }
    });
    CHECK((small_was_first || !small_ran.load()));
}

TEST_CASE("who waits for memory notices that the user wants to stop") {
    CancelToken cancel;
    MemoryScheduler scheduler(100, 2, cancel);
    const std::vector<std::uint64_t> bytes{50, 50};
    std::atomic<bool> other_holds{false};
    const auto run = [&] {
        scheduler.run(bytes, [&](std::size_t i, MemoryScheduler::Grant& grant) {
            if (i == 0) {
                // Holds its bytes until the other one, which waits for more, has been told to stop.
                other_holds = true;
                for (int tries = 0; tries < 50; ++tries) wait_a_little();
                cancel.request();
                for (int tries = 0; tries < 150; ++tries) wait_a_little();
            } else {
                for (int tries = 0; tries < 500 && !other_holds; ++tries) wait_a_little();
                grant.exchange(90);
            }
        });
    };
    try {
        run();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::interrupted);
    }
    CHECK(cancel.requested());
    std::atomic<int> started{0};
    CHECK_THROWS_AS(scheduler.run(bytes, [&](std::size_t, MemoryScheduler::Grant&) { ++started; }), Error);
    CHECK(started == 0);
}
