#include "tiling/edit_sequence.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::test;

namespace {

SequenceReport check_sequences(const CityMaker& maker, std::uint64_t first_seed, int sequences, int steps) {
    SequenceReport sum;
    for (int i = 0; i < sequences; ++i)
        sum += check_sequence(maker, first_seed + 10 * static_cast<std::uint64_t>(i), steps);
    return sum;
}

/// A sequence that never did it has not tried it.
void check_all_tried(const SequenceReport& sum) {
    CHECK(sum.resized > 0);
    CHECK(sum.divided > 0);
    CHECK(sum.sharded > 0);
    CHECK(sum.shares_lost > 0);
    CHECK(sum.shares_repeated > 0);
    CHECK(sum.collected > 0);
    CHECK(sum.rolled_back > 0);
    CHECK(sum.repaired > 0);
}

}  // namespace

TEST_CASE("after any mixture of edits, tile sizes, budgets, shards and care a city equals a clean build") {
    check_all_tried(check_sequences(toy_maker(), 1000, 10, 6));
}

TEST_CASE("after any mixture of edits and care a city without what moved equals a clean build") {
    const SequenceReport sum = check_sequences(carving_maker(), 3000, 2, 6);
    CHECK(sum.removed > 0);
}

TEST_CASE("two hundred random sequences of edits, tile sizes, budgets, shards and care give clean cities",
          "[slow]") {
    check_all_tried(check_sequences(toy_maker(), 5000, 200, 10));
}

TEST_CASE("forty random sequences of edits and care give clean cities without what moved", "[slow]") {
    check_all_tried(check_sequences(carving_maker(), 7000, 40, 8));
}
