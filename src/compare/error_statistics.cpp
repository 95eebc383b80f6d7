#include "compare/error_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::compare {

void ErrorStatistics::add(double error_m) {
    if (bins_.empty()) bins_.resize(2 * kSide);
    const double size_m = std::fabs(error_m);
    ++count_;
    for (std::size_t i = 0; i < kLimits; ++i) within_[i] += size_m <= kLimits_m[i];
    micrometres_ += static_cast<std::uint64_t>(size_m * 1e6 + 0.5);
    const double bin = std::floor(error_m / kBin_m) + static_cast<double>(kSide);
    ++bins_[static_cast<std::size_t>(std::clamp(bin, 0.0, 2.0 * kSide - 1))];
}

double ErrorStatistics::median_m() const {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kSide && count_ > 0; ++i) {
        below += std::uint64_t{bins_[kSide + i]} + bins_[kSide - 1 - i];
        if (2 * below >= count_) return (static_cast<double>(i) + 0.5) * kBin_m;
    }
    return 0;
}

double ErrorStatistics::bias_m() const {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
        below += bins_[i];
        if (2 * below >= count_) return (static_cast<double>(i) - static_cast<double>(kSide) + 0.5) * kBin_m;
    }
    return 0;
}

double ErrorStatistics::mean_m() const {
    return count_ == 0 ? 0 : static_cast<double>(micrometres_) * 1e-6 / static_cast<double>(count_);
}

}  // namespace citysplat::compare
