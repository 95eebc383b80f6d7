#include "sim/learn/probit.hpp"

#include "core/math/math_hd.hpp"

#include <cmath>

namespace citysplat::sim::learn {

namespace {

constexpr float kReach = 8;
constexpr int kStepsPerUnit = 512;
constexpr double kPerRootTwoPi = 0.39894228040143267794;

double density(double x) { return kPerRootTwoPi * exponential(-0.5 * x * x); }

/// (1 − Φ(x)) / φ(x) for x >= 3: Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/…))).
double mills_ratio(double x) {
    double tail = x;
    for (int k = 60; k >= 1; --k) tail = x + k / tail;
    return 1 / tail;
}

/// Φ(x) / φ(x).
double cdf_per_density(double x) {
    if (x < -3) return mills_ratio(-x);
    if (x > 3) return 1 / density(x) - mills_ratio(x);
    // Φ(x) = ½ + φ(x)·(x + x³/3 + x⁵/(3·5) + …).
    double term = x, sum = x;
    for (int k = 3; k < 90; k += 2) sum += term *= x * x / k;
    return 0.5 / density(x) + sum;
}

}  // namespace

double exponential(double x) {
    constexpr double kLog2 = 0.69314718055994530942;
    const double whole = std::floor(x / kLog2 + 0.5), r = x - whole * kLog2;
    double sum = 1;
    for (int k = 16; k >= 1; --k) sum = 1 + sum * r / k;
    return std::ldexp(sum, static_cast<int>(whole));
}

double normal_cdf(double x) {
    if (x < -37) return 0;
    if (x > 9) return 1;
    return cdf_per_density(x) * density(x);
}

ProbitLoss::ProbitLoss() {
    for (int i = 0; i <= 2 * static_cast<int>(kReach) * kStepsPerUnit; ++i) {
        const double t = static_cast<double>(i) / kStepsPerUnit - static_cast<double>(kReach);
        const double ratio = cdf_per_density(t);
        // log Φ = log φ + log of the ratio, which does not vanish where Φ does.
        const double log_cdf = exact::log(kPerRootTwoPi) - 0.5 * t * t + exact::log(ratio);
        table_.push_back({static_cast<float>(-log_cdf), static_cast<float>(1 / ratio)});
    }
}

ProbitLoss::Value ProbitLoss::at(float t) const {
    const float place = (t < -kReach ? 0 : t > kReach ? 2 * kReach : t + kReach) * kStepsPerUnit;
    auto i = static_cast<std::size_t>(place);
    if (i + 1 >= table_.size()) i = table_.size() - 2;
    const float s = place - static_cast<float>(i);
    const Value &a = table_[i], &b = table_[i + 1];
    return {a.loss + s * (b.loss - a.loss), a.slope + s * (b.slope - a.slope)};
}

}  // namespace citysplat::sim::learn
