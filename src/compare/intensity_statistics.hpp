#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace citysplat::compare {

/// Pairs of intensities, real and simulated, on 256 levels: what 8-bit sensors record. Counts only, so the
/// order of additions cannot matter.
class IntensityStatistics {
  public:
    void add(std::uint16_t real, std::uint16_t simulated);

    std::uint64_t count() const { return count_; }
    double pearson() const;     ///< correlation; 0 where one of the two does not vary
    double spearman() const;    ///< correlation of the ranks; equal values share their mean rank
    double mean_error() const;  ///< mean absolute difference, of full scale
    double real_quantile(double share) const { return quantile(share, kLevels, 1); }  ///< of full scale
    double simulated_quantile(double share) const { return quantile(share, 1, kLevels); }

  private:
    static constexpr std::size_t kLevels = 256;
    double quantile(double share, std::size_t row_stride, std::size_t column_stride) const;
    /// Correlation of value_of_real[r] and value_of_simulated[s] over all pairs.
    double correlation(const std::vector<double>& value_of_real,
                       const std::vector<double>& value_of_simulated) const;

    std::uint64_t count_ = 0;
    std::vector<std::uint32_t> pairs_;  ///< [real][simulated]
};

}  // namespace citysplat::compare
