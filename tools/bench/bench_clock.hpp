#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>

namespace citysplat::bench {

inline double wall_now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Processor time of all threads of this process: what a shared machine does besides does not count.
inline double cpu_now_s() {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Elapsed {
    double wall_s = 0, cpu_s = 0;
};

template <class Work>
Elapsed measure(const Work& work) {
    const double wall = wall_now_s(), cpu = cpu_now_s();
    work();
    return {wall_now_s() - wall, cpu_now_s() - cpu};
}

/// The best of several rounds, wall clock and processor time each for itself.
template <class Work>
Elapsed best_of(int rounds, const Work& work) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    Elapsed best{kNever, kNever};
    for (int round = 0; round < rounds; ++round) {
        const Elapsed now = measure(work);
        best = {std::min(best.wall_s, now.wall_s), std::min(best.cpu_s, now.cpu_s)};
    }
    return best;
}

}  // namespace citysplat::bench
