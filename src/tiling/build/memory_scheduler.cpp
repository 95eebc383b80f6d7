#include "tiling/build/memory_scheduler.hpp"

#include "core/parallel.hpp"

#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <exception>

namespace citysplat::tiling {

namespace {

/// How often a waiting slot looks whether the user wants to stop.
constexpr std::chrono::milliseconds kPatience{100};

}  // namespace

MemoryScheduler::MemoryScheduler(std::uint64_t budget_bytes, int threads, const CancelToken& cancel)
    : budget_(budget_bytes), threads_(threads), cancel_(cancel) {}

void MemoryScheduler::take(std::uint64_t bytes) {
    used_ += bytes;
    peak_ = std::max(peak_, used_);
}

void MemoryScheduler::give_back(std::uint64_t bytes) {
    used_ -= bytes;
    changed_.notify_all();
}

void MemoryScheduler::Grant::exchange(std::uint64_t bytes) {
    MemoryScheduler& s = scheduler_;
    std::unique_lock lock(s.mutex_);
    s.give_back(bytes_);
    bytes_ = 0;
    while (s.used_ != 0 && s.used_ + bytes > s.budget_) {
        s.cancel_.check();
        s.changed_.wait_for(lock, kPatience);
    }
    s.take(bytes);
    bytes_ = bytes;
}

void MemoryScheduler::run(std::span<const std::uint64_t> bytes,
                          const std::function<void(std::size_t, Grant&)>& work) {
    for (std::size_t i = 0; i < bytes.size(); ++i) waiting_.emplace(bytes[i], i);
    parallel_tasks(static_cast<std::size_t>(threads_), [&](std::size_t) { slot(work); });
    waiting_.clear();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void MemoryScheduler::slot(const std::function<void(std::size_t, Grant&)>& work) {
    std::unique_lock lock(mutex_);
    while (!waiting_.empty() && !error_) {
        auto job = waiting_.end();
        if (used_ == 0)
            job = std::prev(waiting_.end());
        else if (used_ < budget_) {
            job = waiting_.upper_bound({budget_ - used_, SIZE_MAX});
            job = job == waiting_.begin() ? waiting_.end() : std::prev(job);
        }
        if (job == waiting_.end()) {
            changed_.wait_for(lock, kPatience);
            continue;
        }
        Grant grant(*this, job->first);
        const std::size_t index = job->second;
        waiting_.erase(job);
        take(grant.bytes_);
        lock.unlock();
        std::exception_ptr error;
        try {
            cancel_.check();
            tbb::this_task_arena::isolate([&] { work(index, grant); });
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        if (error && !error_) error_ = error;
        give_back(grant.bytes_);
    }
}

}  // namespace citysplat::tiling
