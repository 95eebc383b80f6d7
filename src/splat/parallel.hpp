#pragma once

#include "core/cancel.hpp"
#include "core/parallel.hpp"

#include <tbb/task_arena.h>

#include <algorithm>
#include <cstddef>

namespace citysplat::splat {

/// Calls body(begin, end) for consecutive chunks of [0, n), in parallel. A waiting thread does not pick up
/// unrelated work (another tile), which would hold two tiles' memory at once.
template <class Body>
void for_each_chunk(std::size_t n, std::size_t chunk, const CancelToken& cancel, const Body& body) {
    tbb::this_task_arena::isolate([&] {
        parallel_for((n + chunk - 1) / chunk, [&](std::size_t c) {
            cancel.check();
            body(c * chunk, std::min(n, (c + 1) * chunk));
        });
    });
}

}  // namespace citysplat::splat
