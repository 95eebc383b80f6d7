#include "compare/intensity_statistics.hpp"

#include <cmath>

namespace citysplat::compare {

void IntensityStatistics::add(std::uint16_t real, std::uint16_t simulated) {
    if (pairs_.empty()) pairs_.resize(kLevels * kLevels);
    // 65535 is level 255 of an 8-bit column; readers multiply by 257.
    const auto level = [](std::uint16_t v) { return (static_cast<std::size_t>(v) + 128) / 257; };
    ++pairs_[level(real) * kLevels + level(simulated)];
    ++count_;
}

double IntensityStatistics::correlation(const std::vector<double>& value_of_real,
                                        const std::vector<double>& value_of_simulated) const {
    if (count_ == 0) return 0;
    const auto over_pairs = [&](auto term) {
        double sum = 0;
        for (std::size_t r = 0; r < kLevels; ++r)
            for (std::size_t s = 0; s < kLevels; ++s)
                if (const std::uint32_t n = pairs_[r * kLevels + s]; n > 0)
                    sum += static_cast<double>(n) * term(value_of_real[r], value_of_simulated[s]);
        return sum;
    };
    const auto n = static_cast<double>(count_);
    const double mean_real = over_pairs([](double r, double) { return r; }) / n;
    const double mean_simulated = over_pairs([](double, double s) { return s; }) / n;
    const double both =
        over_pairs([&](double r, double s) { return (r - mean_real) * (s - mean_simulated); });
    const double real = over_pairs([&](double r, double) { return (r - mean_real) * (r - mean_real); });
    const double simulated =
        over_pairs([&](double, double s) { return (s - mean_simulated) * (s - mean_simulated); });
    return real > 0 && simulated > 0 ? both / std::sqrt(real * simulated) : 0;
}

double IntensityStatistics::pearson() const {
    std::vector<double> levels(kLevels);
    for (std::size_t i = 0; i < kLevels; ++i) levels[i] = static_cast<double>(i);
    return correlation(levels, levels);
}

double IntensityStatistics::spearman() const {
    if (count_ == 0) return 0;
    // Twice the mean rank of the values of each level: what is below, and half of what is equal.
    std::vector<double> real(kLevels), simulated(kLevels);
    std::uint64_t below_real = 0, below_simulated = 0;
    for (std::size_t level = 0; level < kLevels; ++level) {
        std::uint64_t equal_real = 0, equal_simulated = 0;
        for (std::size_t other = 0; other < kLevels; ++other) {
            equal_real += pairs_[level * kLevels + other];
            equal_simulated += pairs_[other * kLevels + level];
        }
        real[level] = static_cast<double>(2 * below_real + equal_real);
        simulated[level] = static_cast<double>(2 * below_simulated + equal_simulated);
        below_real += equal_real;
        below_simulated += equal_simulated;
    }
    return correlation(real, simulated);
}

double IntensityStatistics::mean_error() const {
    if (count_ == 0) return 0;
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r < kLevels; ++r)
        for (std::size_t s = 0; s < kLevels; ++s)
            sum += std::uint64_t{pairs_[r * kLevels + s]} * (r > s ? r - s : s - r);
    return static_cast<double>(sum) / (kLevels - 1) / static_cast<double>(count_);
}

double IntensityStatistics::quantile(double share, std::size_t row_stride, std::size_t column_stride) const {
    if (count_ == 0) return 0;
    const double wanted = share * static_cast<double>(count_);
    std::uint64_t below = 0;
    for (std::size_t level = 0; level < kLevels; ++level) {
        for (std::size_t other = 0; other < kLevels; ++other)
            below += pairs_[level * row_stride + other * column_stride];
        if (static_cast<double>(below) >= wanted) return static_cast<double>(level) / (kLevels - 1);
    }
    return 1;
}

}  // namespace citysplat::compare
