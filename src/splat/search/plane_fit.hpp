#pragma once

#include "core/math/vec_hd.hpp"
#include "splat/search/neighbour_search.hpp"

#include <span>

namespace citysplat::splat {

/// Principal axes of a neighbourhood. Eigenvalues of the covariance are given as shares of their sum.
struct PlaneFit {
    enum class Shape : std::uint8_t { plane, line, point };

    Vec3d normal;                   ///< unit; for a line one normal of many, for a point the z axis
    Vec3d axis;                     ///< unit, along the line; only for Shape::line
    double share1, share2, share3;  ///< λ1 ≥ λ2 ≥ λ3, sum 1; all 0 for a point
    double variance;                ///< λ1 + λ2 + λ3 in steps²
    double offset;                  ///< distance of the query from the plane through the centroid, steps
    Shape shape;
};

/// Fits planes to exact moments. Only +, −, ×, ÷ and sqrt in one fixed order: the same bits on any machine.
/// Requires out.size() == moments.size().
void fit_planes(std::span<const Moments> moments, std::span<PlaneFit> out);

}  // namespace citysplat::splat
