#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <cstddef>

namespace citysplat::test {

/// Calls body() where loops have so many threads, also on a machine with fewer cores: for tests in which one
/// job waits for another. When each of them gets a core is up to the system.
template <class Body>
void with_threads(int threads, const Body& body) {
    const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism,
                                      static_cast<std::size_t>(threads));
    tbb::task_arena(threads).execute(body);
}

}  // namespace citysplat::test
