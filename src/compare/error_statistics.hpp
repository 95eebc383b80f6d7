#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace citysplat::compare {

/// Signed errors of simulated ranges: shares, medians, means. Sums are integers, so the order of additions
/// cannot matter.
class ErrorStatistics {
  public:
    /// Errors of at most these are counted.
    static constexpr double kLimits_m[] = {0.05, 0.10, 0.20, 0.50};
    static constexpr std::size_t kLimits = 4;
    static constexpr double kBin_m = 2e-4;
    static constexpr double kFarthestBin_m = 2;  ///< medians beyond it are this

    /// Simulated minus real.
    void add(double error_m);

    std::uint64_t count() const { return count_; }
    std::uint64_t within(std::size_t limit) const { return within_[limit]; }  ///< of kLimits_m
    double median_m() const;                                                  ///< of the absolute errors
    double bias_m() const;  ///< median of the signed errors: negative where the simulation is nearer
    double mean_m() const;  ///< of the absolute errors

  private:
    static constexpr std::size_t kSide = 10000;  ///< bins on either side of 0
    static_assert(kSide * kBin_m == kFarthestBin_m);

    std::uint64_t count_ = 0, within_[kLimits]{};
    std::uint64_t micrometres_ = 0;
    std::vector<std::uint32_t> bins_;  ///< from −kFarthestBin_m; the outermost take the rest
};

}  // namespace citysplat::compare
