#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>

#include <cstddef>

/// Loops on TBB's threads. Use these instead of TBB's own: the library is not instrumented, so that
/// ThreadSanitizer does not see it hand work from thread to thread, and would report every loop. Here it is
/// told.
#ifdef __SANITIZE_THREAD__
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
/// For functions that TBB calls: they read their captures before anything could be said about them.
#define CITYSPLAT_CALLED_BY_TBB __attribute__((no_sanitize("thread")))
#else
#define CITYSPLAT_CALLED_BY_TBB
#endif

namespace citysplat {

/// What a thread did before release() is done for every thread that comes to acquire() later. TBB sees to
/// that; this only says so.
class Handover {
  public:
#ifdef __SANITIZE_THREAD__
    void release() const { __tsan_release(&here_); }
    void acquire() const { __tsan_acquire(&here_); }

  private:
    mutable char here_ = 0;
#else
    void release() const {}
    void acquire() const {}
#endif
};

/// Around a call of TBB: its branches begin after what came before the call and end before what comes after
/// it.
class ForkJoin {
  public:
    ForkJoin() { fork_.release(); }
    ~ForkJoin() { join_.acquire(); }
    ForkJoin(const ForkJoin&) = delete;
    ForkJoin& operator=(const ForkJoin&) = delete;

    class Branch {
      public:
        explicit Branch(const ForkJoin& call) : call_(call) { call.fork_.acquire(); }
        ~Branch() { call_.join_.release(); }
        Branch(const Branch&) = delete;
        Branch& operator=(const Branch&) = delete;

      private:
        const ForkJoin& call_;
    };

  private:
    Handover fork_, join_;
};

/// Calls body(begin, end) for parts of [0, n), in parallel; parts are split down to `grain`.
template <class Body, class Partitioner = tbb::auto_partitioner>
void parallel_ranges(std::size_t n, std::size_t grain, const Body& body,
                     const Partitioner& partitioner = {}) {
    const ForkJoin call;
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, n, grain),
        [&](const tbb::blocked_range<std::size_t>& range) CITYSPLAT_CALLED_BY_TBB {
            const ForkJoin::Branch branch(call);
            body(range.begin(), range.end());
        },
        partitioner);
}

/// Calls body(i) for each i in [0, n), in parallel.
template <class Body, class Partitioner = tbb::auto_partitioner>
void parallel_for(std::size_t n, const Body& body, const Partitioner& partitioner = {}) {
    parallel_ranges(
        n, 1,
        [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) body(i);
        },
        partitioner);
}

/// Calls both, in parallel.
template <class A, class B>
void parallel_invoke(const A& a, const B& b) {
    const ForkJoin call;
    const auto branch = [&](const auto& f) {
        const ForkJoin::Branch inside(call);
        f();
    };
    tbb::parallel_invoke([&]() CITYSPLAT_CALLED_BY_TBB { branch(a); },
                         [&]() CITYSPLAT_CALLED_BY_TBB { branch(b); });
}

}  // namespace citysplat
