#pragma once

#include <vector>

/// The normal distribution for training: functions made of exactly rounded operations alone, so that the same
/// rays give the same model on any machine.
namespace citysplat::sim::learn {

/// e^x. Requires |x| < 700.
double exponential(double x);

/// Φ(x), the probability that a standard normal number is below x.
double normal_cdf(double x);

/// −log Φ(t) and its negative derivative φ(t) / Φ(t), from a table with linear interpolation: errors below
/// 1e-5 for |t| ≤ 8, and t is cut there.
class ProbitLoss {
  public:
    ProbitLoss();
    struct Value {
        float loss, slope;
    };
    Value at(float t) const;

  private:
    std::vector<Value> table_;
};

}  // namespace citysplat::sim::learn
