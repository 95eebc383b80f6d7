#pragma once

#include "core/cancel.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <utility>

namespace citysplat::tiling {

/// Runs jobs in parallel on TBB such that the memory they announced never exceeds a budget. Large jobs start
/// first; a smaller one goes ahead while the large one does not fit. A job larger than the whole budget runs
/// alone.
///
/// Protocol: each of `threads` slots repeats: take the largest waiting job that fits, run it, give its bytes
/// back, wake the others. A slot waits only while another one is running, so that somebody always gets on.
/// Jobs run isolated: a slot that waits inside a job's own TBB loop does not start another job on top.
class MemoryScheduler {
  public:
    MemoryScheduler(std::uint64_t budget_bytes, int threads, const CancelToken& cancel);

    /// What a running job holds.
    class Grant {
      public:
        /// The job turned out to need `bytes` in all. Gives back what it has and waits until there is room;
        /// requires that the job holds no large memory at this moment.
        void exchange(std::uint64_t bytes);

      private:
        friend class MemoryScheduler;
        Grant(MemoryScheduler& scheduler, std::uint64_t bytes) : scheduler_(scheduler), bytes_(bytes) {}
        MemoryScheduler& scheduler_;
        std::uint64_t bytes_;
    };

    /// Runs work(i, grant) for every i, job i announcing bytes[i]. The first exception stops the jobs that
    /// have not started and is thrown again when the running ones have ended.
    void run(std::span<const std::uint64_t> bytes, const std::function<void(std::size_t, Grant&)>& work);

    std::uint64_t peak_bytes() const { return peak_; }

  private:
    void slot(const std::function<void(std::size_t, Grant&)>& work);
    void take(std::uint64_t bytes);
    void give_back(std::uint64_t bytes);

    const std::uint64_t budget_;
    const int threads_;
    const CancelToken& cancel_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<std::pair<std::uint64_t, std::size_t>> waiting_;  ///< by bytes
    std::uint64_t used_ = 0, peak_ = 0;
    std::exception_ptr error_;
};

}  // namespace citysplat::tiling
