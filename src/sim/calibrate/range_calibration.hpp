#pragma once

#include "sim/sensor/sensor_model_hd.hpp"

#include <cstddef>
#include <filesystem>
#include <vector>

namespace citysplat::sim {

/// A distance that is known, and what the sensor said.
struct RangePair {
    double true_m, measured_m;
};

/// Bias and noise of a sensor by range, as optScan eq. 7 and 8 have it: d + error(d) + noise, with a
/// quadratic error(d).
struct RangeCalibration {
    RangeError error;
    std::size_t pairs = 0;     ///< that were used; those far from all others at their range are not
    double rmse_before_m = 0;  ///< with the bias that the sensor had before
    double rmse_after_m = 0;   ///< with the new one: what is left is noise
};

inline constexpr std::size_t kLeastRangePairs = 10;

/// Throws InputError when there are fewer than kLeastRangePairs pairs.
RangeCalibration calibrate_range(std::vector<RangePair> pairs, const RangeError& before);

/// A text file with the columns true_m and measured_m, named in its first line. Throws InputError with the
/// line.
std::vector<RangePair> read_range_table(const std::filesystem::path& path);

/// Least squares with three unknowns: rows are added one by one.
class ThreeUnknowns {
  public:
    void add(double x0, double x1, double x2, double y, double weight);
    struct Solution {
        double a = 0, b = 0, c = 0;
    };
    /// What the rows do not determine is 0.
    Solution solve() const;

  private:
    double m_[3][3] = {};
    double v_[3] = {};
};

}  // namespace citysplat::sim
