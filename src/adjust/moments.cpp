#include "adjust/moments.hpp"

#include <cmath>
#include <utility>

namespace citysplat::adjust {

namespace {

/// Jacobi's method: rotations that make one pair of off-diagonal elements zero after the other. Five sweeps
/// over the three pairs are enough for doubles.
constexpr int kSweeps = 6;

struct Eigen3 {
    double m[3][3];
    double vectors[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};  ///< columns

    void rotate(int p, int q) {
        if (m[p][q] == 0) return;
        const double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
        const double t = (theta >= 0 ? 1.0 : -1.0) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (int k = 0; k < 3; ++k) {
            const double a = m[k][p], b = m[k][q];
            m[k][p] = c * a - s * b, m[k][q] = s * a + c * b;
        }
        for (int k = 0; k < 3; ++k) {
            const double a = m[p][k], b = m[q][k];
            m[p][k] = c * a - s * b, m[q][k] = s * a + c * b;
        }
        for (auto& row : vectors) {
            const double a = row[p], b = row[q];
            row[p] = c * a - s * b, row[q] = s * a + c * b;
        }
    }
};

}  // namespace

Spread spread_of(const Symmetric3& scatter, double points) {
    const Symmetric3& s = scatter;
    Eigen3 e{{{s.xx, s.xy, s.xz}, {s.xy, s.yy, s.yz}, {s.xz, s.yz, s.zz}}};
    for (int sweep = 0; sweep < kSweeps; ++sweep) e.rotate(0, 1), e.rotate(0, 2), e.rotate(1, 2);
    int order[3]{0, 1, 2};
    const auto sort_pair = [&](int a, int b) {
        if (e.m[order[b]][order[b]] < e.m[order[a]][order[a]]) std::swap(order[a], order[b]);
    };
    sort_pair(0, 1), sort_pair(1, 2), sort_pair(0, 1);
    const int least = order[0];
    return {{e.vectors[0][least], e.vectors[1][least], e.vectors[2][least]},
            std::fmax(0.0, e.m[least][least] / points),
            std::fmax(0.0, e.m[order[1]][order[1]] / points)};
}

}  // namespace citysplat::adjust
