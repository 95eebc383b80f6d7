#pragma once

#include "tiling/city_checks.hpp"

#include <cstdint>

namespace citysplat::test {

/// How often the steps of a sequence did what a plain build does not.
struct SequenceReport {
    int builds = 0, resized = 0, divided = 0, sharded = 0, shares_lost = 0, shares_repeated = 0,
        collected = 0, rolled_back = 0, repaired = 0;
    std::uint64_t removed = 0;  ///< points that were seen through, in all clean builds
    SequenceReport& operator+=(const SequenceReport& other);
};

/// Random edits of the inputs, each built with a random tile size, division, budget and number of shards, and
/// between them garbage collected, earlier generations brought back and the catalog rebuilt from the objects.
/// After every step the city equals a clean build of the same inputs with the same means, and has not a
/// damaged byte.
SequenceReport check_sequence(const CityMaker& maker, std::uint64_t seed, int steps);

}  // namespace citysplat::test
