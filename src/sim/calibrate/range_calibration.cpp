#include "sim/calibrate/range_calibration.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace citysplat::sim {

namespace {

/// Pairs of about one range, whose scatter is noise.
constexpr std::size_t kMostBins = 24, kPairsPerBin = 50;
/// What is farther from the middle than so many sigmas is another surface.
constexpr double kOutlierSigmas = 3.5;
/// The standard deviation of a normal distribution as a multiple of the median of its absolute values, and of
/// the standard deviation of what lies within kOutlierSigmas.
constexpr double kSigmaPerMedian = 1.4826, kSigmaPerCut = 1.0031;
/// No sensor is better: a smaller sigma would be rounding in the files.
constexpr double kLeastSigma_m = 1e-5;

double median_of(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double error_of(const RangePair& p) { return p.measured_m - p.true_m; }

/// Sorted pairs [begin, end) of about one range.
struct Bin {
    std::size_t begin, end;
    double middle_m = 0, sigma_m = 0;

    bool keeps(const RangePair& p) const {
        return std::fabs(error_of(p) - middle_m) <= kOutlierSigmas * sigma_m;
    }
};

std::vector<Bin> bins_of(const std::vector<RangePair>& pairs) {
    const std::size_t count = std::clamp<std::size_t>(pairs.size() / kPairsPerBin, 1, kMostBins);
    std::vector<Bin> bins;
    for (std::size_t k = 0; k < count; ++k) {
        Bin bin{k * pairs.size() / count, (k + 1) * pairs.size() / count};
        std::vector<double> values;
        for (std::size_t i = bin.begin; i < bin.end; ++i) values.push_back(error_of(pairs[i]));
        bin.middle_m = median_of(values);
        for (double& v : values) v = std::fabs(v - bin.middle_m);
        bin.sigma_m = std::max(kLeastSigma_m, kSigmaPerMedian * median_of(values));
        bins.push_back(bin);
    }
    return bins;
}

Quadratic quadratic_of(const ThreeUnknowns::Solution& s) { return {s.a, s.b, s.c}; }

/// A sigma may not be negative where the sensor measures.
bool is_positive(const Quadratic& q, double from_m, double to_m) {
    for (int i = 0; i <= 100; ++i)
        if (!(q.at(from_m + (to_m - from_m) * i / 100) > 0)) return false;
    return true;
}

}  // namespace

void ThreeUnknowns::add(double x0, double x1, double x2, double y, double weight) {
    const double x[3] = {x0, x1, x2};
    for (int i = 0; i < 3; ++i) {
        v_[i] += weight * x[i] * y;
        for (int j = 0; j < 3; ++j) m_[i][j] += weight * x[i] * x[j];
    }
}

/// Cholesky; a pivot that has lost all its digits means that nothing new is known of that unknown.
ThreeUnknowns::Solution ThreeUnknowns::solve() const {
    double l[3][3] = {}, y[3] = {}, x[3] = {};
    for (int j = 0; j < 3; ++j) {
        double pivot = m_[j][j];
        for (int k = 0; k < j; ++k) pivot -= l[j][k] * l[j][k];
        if (!(pivot > 1e-10 * m_[j][j])) continue;
        l[j][j] = std::sqrt(pivot);
        for (int i = j + 1; i < 3; ++i) {
            double sum = m_[i][j];
            for (int k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
            l[i][j] = sum / l[j][j];
        }
    }
    for (int i = 0; i < 3; ++i) {
        if (l[i][i] == 0) continue;
        double sum = v_[i];
        for (int k = 0; k < i; ++k) sum -= l[i][k] * y[k];
        y[i] = sum / l[i][i];
    }
    for (int i = 2; i >= 0; --i) {
        if (l[i][i] == 0) continue;
        double sum = y[i];
        for (int k = i + 1; k < 3; ++k) sum -= l[k][i] * x[k];
        x[i] = sum / l[i][i];
    }
    return {x[0], x[1], x[2]};
}

RangeCalibration calibrate_range(std::vector<RangePair> pairs, const RangeError& before) {
    if (pairs.size() < kLeastRangePairs)
        throw InputError("ranges are calibrated from " + std::to_string(kLeastRangePairs) +
                         " pairs of true and measured distances at least, there are " +
                         std::to_string(pairs.size()));
    std::sort(pairs.begin(), pairs.end(), [](const RangePair& a, const RangePair& b) {
        return std::pair(a.true_m, a.measured_m) < std::pair(b.true_m, b.measured_m);
    });
    const std::vector<Bin> bins = bins_of(pairs);
    const auto for_each_kept = [&](const Bin& bin, const auto& f) {
        for (std::size_t i = bin.begin; i < bin.end; ++i)
            if (bin.keeps(pairs[i])) f(pairs[i]);
    };
    RangeCalibration result;
    ThreeUnknowns bias;
    for (const Bin& bin : bins)
        for_each_kept(bin, [&](const RangePair& p) {
            bias.add(1, p.true_m, p.true_m * p.true_m, error_of(p), 1 / (bin.sigma_m * bin.sigma_m));
        });
    result.error.bias_m = quadratic_of(bias.solve());

    ThreeUnknowns sigma;
    double squares = 0, squares_before = 0;
    for (const Bin& bin : bins) {
        double n = 0, sum = 0, range_sum = 0;
        for_each_kept(bin, [&](const RangePair& p) {
            const double left = error_of(p) - result.error.bias_m.at(p.true_m),
                         left_before = error_of(p) - before.bias_m.at(p.true_m);
            n += 1;
            sum += left * left;
            squares_before += left_before * left_before;
            range_sum += p.true_m;
        });
        if (n < 2) continue;
        squares += sum;
        result.pairs += static_cast<std::size_t>(n);
        const double d = range_sum / n, value = std::max(kLeastSigma_m, kSigmaPerCut * std::sqrt(sum / n));
        sigma.add(1, d, d * d, value, n / (value * value));
    }
    const double n = static_cast<double>(std::max<std::size_t>(1, result.pairs));
    result.rmse_after_m = std::sqrt(squares / n);
    result.rmse_before_m = std::sqrt(squares_before / n);
    result.error.sigma_m = quadratic_of(sigma.solve());
    if (bins.size() < 4 || !is_positive(result.error.sigma_m, pairs.front().true_m, pairs.back().true_m))
        result.error.sigma_m = {kSigmaPerCut * result.rmse_after_m, 0, 0};
    return result;
}

std::vector<RangePair> read_range_table(const std::filesystem::path& path) {
    const std::string text = read_text_file(path);
    constexpr NumberRange kDistance_m{0, 10'000, "m"};
    const auto wrong = [&path](const Line& line, const std::string& what) {
        return InputError(path.string() + ": line " + std::to_string(line.number) + ": " + what);
    };
    std::vector<RangePair> pairs;
    bool named = false;
    for (const Line& line : Lines(text)) {
        std::string row(trimmed(line.text));
        if (row.empty() || row[0] == '#') continue;
        std::replace(row.begin(), row.end(), ',', ' ');
        const auto words = words_of(row);
        if (!named) {
            if (words.size() != 2 || words[0] != "true_m" || words[1] != "measured_m")
                throw wrong(line, "the first line must name the columns: true_m,measured_m");
            named = true;
            continue;
        }
        const auto value = [&](std::size_t i) {
            const auto number = words.size() == 2 ? parse_number(words[i]) : std::nullopt;
            if (!number || !kDistance_m.contains(*number))
                throw wrong(line, "expected two distances " + kDistance_m.text());
            return *number;
        };
        pairs.push_back({value(0), value(1)});
    }
    return pairs;
}

}  // namespace citysplat::sim
