#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace citysplat::splat {

/// What a tile spends its time on.
enum class Stage : std::uint8_t {
    columns,       ///< points along the curve, index
    plane_search,  ///< neighbours for normals
    planes,        ///< plane fits, orientation, denoising
    order,         ///< priorities and slices
    growth_search,
    growth,
    settling,
    observations,  ///< intensity, range, incidence
    density_search,
    resampling,
    output,  ///< sorting and encoding splats
};

struct StageInfo {
    std::string_view name;
    bool is_search;
};
inline constexpr std::array<StageInfo, 11> kStages{{{"points along the curve", false},
                                                    {"neighbours for normals", true},
                                                    {"planes and normals", false},
                                                    {"order of points", false},
                                                    {"neighbours for growth", true},
                                                    {"growth", false},
                                                    {"settling", false},
                                                    {"observations", false},
                                                    {"neighbours for density", true},
                                                    {"resampling", false},
                                                    {"sorting splats", false}}};

/// Processor time by stage, summed over threads and tiles. Safe to use from several threads.
class StageTimes {
  public:
    double seconds(Stage stage) const { return 1e-9 * static_cast<double>(of(stage).load()); }
    double total_seconds() const {
        return sum([](const StageInfo&) { return true; });
    }
    /// Part of the total that is neighbour search; 0 when nothing was done.
    double search_share() const {
        const double total = total_seconds();
        return total > 0 ? sum([](const StageInfo& s) { return s.is_search; }) / total : 0;
    }

    /// Adds the processor time of the calling thread from its construction to its end. Not nested.
    class Timer {
      public:
        /// Without `times` it does nothing.
        Timer(StageTimes* times, Stage stage)
            : ns_(times ? &times->of(stage) : nullptr), begin_(ns_ ? now_ns() : 0) {}
        ~Timer() {
            if (ns_) *ns_ += now_ns() - begin_;
        }
        Timer(const Timer&) = delete;
        Timer& operator=(const Timer&) = delete;

      private:
        static std::uint64_t now_ns() {
            timespec t{};
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
            return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
                   static_cast<std::uint64_t>(t.tv_nsec);
        }
        std::atomic<std::uint64_t>* ns_;
        const std::uint64_t begin_;
    };

  private:
    template <class Counts>
    double sum(const Counts& counts) const {
        double s = 0;
        for (std::size_t i = 0; i < kStages.size(); ++i)
            if (counts(kStages[i])) s += seconds(static_cast<Stage>(i));
        return s;
    }
    std::atomic<std::uint64_t>& of(Stage s) { return ns_[static_cast<std::size_t>(s)]; }
    const std::atomic<std::uint64_t>& of(Stage s) const { return ns_[static_cast<std::size_t>(s)]; }
    std::array<std::atomic<std::uint64_t>, kStages.size()> ns_{};
};

}  // namespace citysplat::splat
