#pragma once

#include "core/cancel.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>

/// Loops on TBB's threads. Use these instead of TBB's own: the library is not instrumented, so that
/// ThreadSanitizer does not see it hand work from thread to thread and would report every loop. Here it is
/// told. TBB's own loops are instantiated in parallel.cpp alone.
namespace citysplat {

/// What a thread did before release(at) is done for every thread after its acquire(at). The libraries see to
/// that; these only say so. Also for what Embree does on its threads while it builds a hierarchy.
namespace handover {

#ifdef __SANITIZE_THREAD__
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
inline void acquire(const void* at) { __tsan_acquire(const_cast<void*>(at)); }
inline void release(const void* at) { __tsan_release(const_cast<void*>(at)); }
#else
inline void acquire(const void*) {}
inline void release(const void*) {}
#endif

/// Marks a piece of work of which one is done at a time at this address. TBB makes sure that each begins
/// after the one before has ended; ThreadSanitizer learns it from here.
class Turn {
  public:
    explicit Turn(const void* at) : at_(at) { acquire(at); }
    ~Turn() { release(at_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    const void* at_;
};

}  // namespace handover

namespace detail {

/// Lives around a call of TBB: its branches begin after what came before and end before what comes after.
class ForkJoin {
  public:
    ForkJoin() { handover::release(&fork_); }
    ~ForkJoin() { handover::acquire(&join_); }
    ForkJoin(const ForkJoin&) = delete;
    ForkJoin& operator=(const ForkJoin&) = delete;

    class Branch {
      public:
        explicit Branch(const ForkJoin& call) : call_(call) { handover::acquire(&call.fork_); }
        ~Branch() { handover::release(&call_.join_); }
        Branch(const Branch&) = delete;
        Branch& operator=(const Branch&) = delete;

      private:
        const ForkJoin& call_;
    };

  private:
    char fork_ = 0, join_ = 0;  ///< only their addresses matter
};

using RangeBranch = void(const void* call, std::size_t begin, std::size_t end);
void run_ranges(std::size_t n, std::size_t grain, RangeBranch* branch, const void* call);
/// One task for each number below n.
void run_tasks(std::size_t n, RangeBranch* branch, const void* call);

void run_isolated(void (*body)(const void* call), const void* call);

/// The stages of a pipeline; make() returns nullptr at the end.
struct PipelineBranches {
    void* (*make)(void* call);
    void (*work)(void* call, void* item);
    void (*finish)(void* call, void* item);
};
void run_pipeline(std::size_t in_flight, const PipelineBranches& branches, void* call);

template <class Body>
struct RangeCall {
    const Body& body;
    ForkJoin edges{};  ///< last: the branches begin after what comes before it

    static void branch(const void* call, std::size_t begin, std::size_t end) {
        const auto& self = *static_cast<const RangeCall*>(call);
        const ForkJoin::Branch inside(self.edges);
        self.body(begin, end);
    }
};

}  // namespace detail

/// Calls body(begin, end) for parts of [0, n), in parallel; parts are split down to `grain`.
template <class Body>
void parallel_ranges(std::size_t n, std::size_t grain, const Body& body) {
    const detail::RangeCall<Body> call{body};
    detail::run_ranges(n, grain, &call.branch, &call);
}

/// Calls body(i) for each i in [0, n), in parallel.
template <class Body>
void parallel_for(std::size_t n, const Body& body) {
    parallel_ranges(n, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) body(i);
    });
}

/// Calls body(). A thread that waits for a loop inside it takes up no work from outside meanwhile.
template <class Body>
void isolated(const Body& body) {
    detail::run_isolated([](const void* b) { (*static_cast<const Body*>(b))(); }, &body);
}

/// Calls body(begin, end) for consecutive chunks of [0, n), in parallel. A waiting thread does not pick up
/// unrelated work (another tile), which would hold two tiles' memory at once.
template <class Body>
void for_each_chunk(std::size_t n, std::size_t chunk, const CancelToken& cancel, const Body& body) {
    isolated([&] {
        parallel_for((n + chunk - 1) / chunk, [&](std::size_t c) {
            cancel.check();
            body(c * chunk, std::min(n, (c + 1) * chunk));
        });
    });
}

/// Calls body(i) for each i in [0, n), each as a task of its own: none waits for another to end.
template <class Body>
void parallel_tasks(std::size_t n, const Body& body) {
    const auto one = [&](std::size_t i, std::size_t) { body(i); };
    const detail::RangeCall<decltype(one)> call{one};
    detail::run_tasks(n, &call.branch, &call);
}

/// Calls both, in parallel.
template <class A, class B>
void parallel_invoke(const A& a, const B& b) {
    parallel_tasks(2, [&](std::size_t i) { i == 0 ? a() : b(); });
}

/// Calls make() for one item after the other until it returns nullptr, work(item) in parallel, and
/// finish(item) in the order of make(). No more than `in_flight` items exist at a time. None of them may
/// throw: TBB 2021.8 crashes now and then when a task cancels the group of a pipeline that another thread is
/// leaving.
template <class Item, class Make, class Work, class Finish>
void parallel_pipeline(std::size_t in_flight, const Make& make, const Work& work, const Finish& finish) {
    struct Call {
        const Make& make;
        const Work& work;
        const Finish& finish;
        char making = 0, finishing = 0;
        detail::ForkJoin edges{};  // last, as in RangeCall
    };
    Call call{make, work, finish};
    detail::run_pipeline(in_flight,
                         {[](void* at) -> void* {
                              auto& self = *static_cast<Call*>(at);
                              const detail::ForkJoin::Branch inside(self.edges);
                              const handover::Turn turn(&self.making);
                              std::unique_ptr<Item> item = self.make();
                              if (item) handover::release(item.get());
                              return item.release();
                          },
                          [](void* at, void* item) {
                              auto& self = *static_cast<Call*>(at);
                              const detail::ForkJoin::Branch inside(self.edges);
                              const handover::Turn turn(item);
                              self.work(*static_cast<Item*>(item));
                          },
                          [](void* at, void* item) {
                              auto& self = *static_cast<Call*>(at);
                              const detail::ForkJoin::Branch inside(self.edges);
                              handover::acquire(item);
                              const handover::Turn turn(&self.finishing);
                              const std::unique_ptr<Item> last(static_cast<Item*>(item));
                              self.finish(*last);
                          }},
                         &call);
}

}  // namespace citysplat
