#pragma once

#include "core/math/vec_hd.hpp"
#include "core/parallel.hpp"

#include <nanoflann.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace citysplat::bench {

/// Nearest neighbours in a set of points.
class PointSet {
  public:
    explicit PointSet(std::vector<Vec3d> points) : points_(std::move(points)), tree_(3, *this, {16}) {
        tree_.buildIndex();
    }
    PointSet(const PointSet&) = delete;
    PointSet& operator=(const PointSet&) = delete;

    const std::vector<Vec3d>& points() const { return points_; }
    struct Near {
        std::size_t point;
        double distance;
    };
    Near nearest(Vec3d p) const {
        std::size_t nearest = 0;
        double distance2 = 0;
        const double query[3]{p.x, p.y, p.z};
        nanoflann::KNNResultSet<double> result(1);
        result.init(&nearest, &distance2);
        tree_.findNeighbors(result, query, nanoflann::SearchParams());
        return {nearest, std::sqrt(distance2)};
    }
    /// The nearest `count` points, or all.
    std::vector<std::size_t> nearest(Vec3d p, std::size_t count) const {
        std::vector<std::size_t> found(count);
        std::vector<double> distance2(count);
        const double query[3]{p.x, p.y, p.z};
        nanoflann::KNNResultSet<double> result(count);
        result.init(found.data(), distance2.data());
        tree_.findNeighbors(result, query, nanoflann::SearchParams());
        found.resize(result.size());
        return found;
    }
    std::vector<double> distances(std::span<const Vec3d> from) const {
        std::vector<double> d(from.size());
        for_each_chunk(from.size(), 4096, CancelToken(), [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) d[i] = nearest(from[i]).distance;
        });
        return d;
    }

    // What nanoflann asks for.
    std::size_t kdtree_get_point_count() const { return points_.size(); }
    double kdtree_get_pt(std::size_t i, std::size_t axis) const {
        const Vec3d& p = points_[i];
        return axis == 0 ? p.x : axis == 1 ? p.y : p.z;
    }
    template <class Box>
    bool kdtree_get_bbox(Box&) const {
        return false;
    }

  private:
    std::vector<Vec3d> points_;
    nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<double, PointSet>, PointSet, 3> tree_;
};

}  // namespace citysplat::bench
