#include "core/parallel.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

namespace citysplat::detail {

void run_ranges(std::size_t n, std::size_t grain, RangeBranch* branch, const void* call) {
    using Range = tbb::blocked_range<std::size_t>;
    tbb::parallel_for(Range(0, n, grain), [=](const Range& r) { branch(call, r.begin(), r.end()); });
}

void run_tasks(std::size_t n, RangeBranch* branch, const void* call) {
    tbb::parallel_for(
        std::size_t{0}, n, [=](std::size_t i) { branch(call, i, i + 1); }, tbb::simple_partitioner());
}

void run_isolated(void (*body)(const void* call), const void* call) {
    tbb::this_task_arena::isolate([=] { body(call); });
}

void run_pipeline(std::size_t in_flight, const PipelineBranches& branches, void* call) {
    using tbb::filter_mode;
    const PipelineBranches b = branches;
    tbb::parallel_pipeline(
        in_flight,
        tbb::make_filter<void, void*>(filter_mode::serial_in_order, [=](tbb::flow_control& control) {
            void* const item = b.make(call);
            if (!item) control.stop();
            return item;
        }) & tbb::make_filter<void*, void*>(filter_mode::parallel, [=](void* item) {
            b.work(call, item);
            return item;
        }) & tbb::make_filter<void*, void>(filter_mode::serial_in_order, [=](void* item) {
            b.finish(call, item);
        }));
}

}  // namespace citysplat::detail
