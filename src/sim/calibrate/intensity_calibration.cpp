#include "sim/calibrate/intensity_calibration.hpp"

#include "sim/calibrate/range_calibration.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::sim {

namespace {

constexpr std::size_t kLeastReturns = 1000, kMostReturns = 4'000'000;
/// A beam's gain is drawn towards 1 as by this many returns of mean intensity.
constexpr double kCaution = 20;
/// What is nearly black says little about factors, and what is at the end of the scale was cut.
constexpr std::uint16_t kDark = 200, kBright = 65000;

}  // namespace

void IntensityCalibration::add(std::uint32_t beam, std::uint16_t real, const Return& simulated) {
    if (matched_.size() >= kMostReturns) return;
    matched_.push_back({beam, real, simulated.recorded_intensity, simulated.range_m, simulated.cosine,
                        simulated.recorded_range_m, simulated.recorded_incidence});
}

/// log(real / recorded) = gain + p·log(cos θ / cos θ₀) + q·log(d₀ / d): least squares, rounded to the whole
/// powers that sensor files have.
IntensityModel IntensityCalibration::fit_law() const {
    ThreeUnknowns fit;
    std::size_t used = 0;
    for (const Matched& m : matched_) {
        if (m.real < kDark || m.recorded < kDark || m.real > kBright || m.recorded > kBright) continue;
        if (m.recorded_range_m == kUnknownByte || m.recorded_incidence == kUnknownByte) continue;
        const double reference = std::max(0.05, exact::cos(m.recorded_incidence * (exact::kPi / 2 / 254)));
        const double cosine = std::max(0.05, static_cast<double>(m.cosine));
        fit.add(1, exact::log(cosine / reference),
                exact::log((m.recorded_range_m + 0.5) / std::max(0.1, static_cast<double>(m.range_m))),
                exact::log(static_cast<double>(m.real) / m.recorded), 1);
        ++used;
    }
    if (used < kLeastReturns) return {};
    const ThreeUnknowns::Solution s = fit.solve();
    const auto whole = [](double power) {
        return std::clamp(static_cast<int>(std::floor(power + 0.5)), 0, 8);
    };
    return {whole(s.b), whole(s.c)};
}

IntensityCalibration::Result IntensityCalibration::result() const {
    Result result;
    result.returns = matched_.size();
    if (matched_.size() < kLeastReturns) return result;
    result.law = fit_law();
    std::vector<double> real(gains_), expected(gains_);
    double all = 0;
    for (const Matched& m : matched_) {
        trace::Hit hit;
        hit.intensity = m.recorded;
        hit.range_m = static_cast<double>(m.range_m);
        hit.acquired_range_m = m.recorded_range_m;
        hit.acquired_incidence = m.recorded_incidence;
        const double value = measured_intensity(hit, static_cast<double>(m.cosine), result.law);
        real[m.beam] += m.real;
        expected[m.beam] += value;
        all += value;
    }
    const double caution = kCaution * all / static_cast<double>(matched_.size());
    for (std::size_t beam = 0; beam < gains_; ++beam)
        result.gain.push_back((real[beam] + caution) / (expected[beam] + caution));
    return result;
}

}  // namespace citysplat::sim
