#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace citysplat::compare {

/// Mean, percentiles and maximum of distances. Sums are integers, so the order of additions cannot matter.
class DistanceStatistics {
  public:
    static constexpr double kBin_m = 1e-4;
    static constexpr std::size_t kBins = 20000;  ///< up to 2 m; the last bin takes the rest

    void add(double distance_m) {
        if (bins_.empty()) bins_.resize(kBins + 1);
        ++count_;
        micrometres_ += static_cast<std::uint64_t>(distance_m * 1e6 + 0.5);
        max_m_ = std::max(max_m_, distance_m);
        ++bins_[std::min(static_cast<std::size_t>(distance_m / kBin_m), kBins)];
    }
    void add(const DistanceStatistics& other) {
        if (other.count_ == 0) return;
        if (bins_.empty()) bins_.resize(kBins + 1);
        count_ += other.count_;
        micrometres_ += other.micrometres_;
        max_m_ = std::max(max_m_, other.max_m_);
        for (std::size_t i = 0; i <= kBins; ++i) bins_[i] += other.bins_[i];
    }

    std::uint64_t count() const { return count_; }
    double mean_m() const {
        return count_ == 0 ? 0 : static_cast<double>(micrometres_) * 1e-6 / static_cast<double>(count_);
    }
    double max_m() const { return max_m_; }
    /// Upper edge of the bin that holds the quantile; the maximum when that is beyond 2 m.
    double quantile_m(double share) const {
        const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
        std::uint64_t below = 0;
        for (std::size_t i = 0; i < bins_.size(); ++i) {
            below += bins_[i];
            if (below >= wanted) return i == kBins ? max_m_ : static_cast<double>(i + 1) * kBin_m;
        }
        return max_m_;
    }
    /// Share of distances above a multiple of kBin_m.
    double share_above(double distance_m) const {
        if (count_ == 0) return 0;
        std::uint64_t above = 0;
        for (std::size_t i = static_cast<std::size_t>(distance_m / kBin_m + 0.5); i < bins_.size(); ++i)
            above += bins_[i];
        return static_cast<double>(above) / static_cast<double>(count_);
    }

  private:
    std::uint64_t count_ = 0, micrometres_ = 0;
    double max_m_ = 0;
    std::vector<std::uint64_t> bins_;
};

/// Overall and by semantic class.
struct DistancesByClass {
    DistanceStatistics all;
    std::map<std::uint16_t, DistanceStatistics> classes;

    void add(std::uint16_t label, double distance_m) {
        all.add(distance_m);
        classes[label].add(distance_m);
    }
    void add(const DistancesByClass& other) {
        all.add(other.all);
        for (const auto& [label, statistics] : other.classes) classes[label].add(statistics);
    }
};

}  // namespace citysplat::compare
