#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace citysplat {

/// Where a long stage reports to. `bar` redraws one line on a terminal, `plain` prints a line every few
/// seconds, `json` prints one JSON object per line on stderr, `none` is silent.
enum class ProgressStyle { bar, plain, json, none };

/// Reporter of the stages of one command. Protocol: one thread begins and ends a stage (with a Stage object);
/// any number of threads advance it. Advancing is one atomic add, and at most one thread at a time prints.
class Progress {
  public:
    explicit Progress(ProgressStyle style = ProgressStyle::none) : style_(style) {}
    ProgressStyle style() const { return style_; }

    /// A named stage of `total` units (0: unknown). Ends with the object's life.
    class Stage {
      public:
        Stage(Progress& progress, std::string_view name, std::uint64_t total, std::string_view unit);
        ~Stage();
        Stage(const Stage&) = delete;
        Stage& operator=(const Stage&) = delete;

        void advance(std::uint64_t units);
        std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }

      private:
        void report(bool last);

        Progress& progress_;
        std::string name_, unit_;
        std::uint64_t total_;
        std::chrono::steady_clock::time_point begin_;
        std::atomic<std::uint64_t> done_{0};
        std::atomic<std::int64_t> next_report_ns_;
        std::mutex printing_;
    };

  private:
    ProgressStyle style_;
};

}  // namespace citysplat
