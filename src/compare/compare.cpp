#include "compare/compare.hpp"

#include "compare/point_columns.hpp"
#include "core/parallel.hpp"

#include <nanoflann.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

namespace citysplat::compare {

namespace {

/// Nearest neighbours within this are found in the column and its halo; the few others look farther.
constexpr double kHalo_m = 1.0;

class NeighbourTree {
  public:
    explicit NeighbourTree(std::vector<ColumnPoint> points)
        : points_(std::move(points)), tree_(3, *this, {16}) {}

    double distance_to(const ColumnPoint& query) const {
        const float at[3] = {query.x, query.y, query.z};
        std::uint32_t index;
        float squared;
        if (points_.empty() || tree_.knnSearch(at, 1, &index, &squared) == 0) return kFarthestNeighbour_m;
        // The tree's float distance chose; the value is taken in double.
        const ColumnPoint& p = points_[index];
        const Vec3d d{static_cast<double>(p.x) - static_cast<double>(query.x),
                      static_cast<double>(p.y) - static_cast<double>(query.y),
                      static_cast<double>(p.z) - static_cast<double>(query.z)};
        return std::min(length(d), kFarthestNeighbour_m);
    }

    std::size_t kdtree_get_point_count() const { return points_.size(); }
    float kdtree_get_pt(std::size_t i, std::size_t axis) const {
        const ColumnPoint& p = points_[i];
        return axis == 0 ? p.x : axis == 1 ? p.y : p.z;
    }
    template <class Box>
    bool kdtree_get_bbox(Box&) const {
        return false;
    }

  private:
    using Tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<float, NeighbourTree>,
                                                     NeighbourTree, 3, std::uint32_t>;
    std::vector<ColumnPoint> points_;
    Tree tree_;
};

void scatter(std::span<const OpenCloud> clouds, PointColumns& columns, const char* name,
             const CancelToken& cancel, Progress& progress) {
    std::uint64_t points = 0;
    for (const OpenCloud& open : clouds) points += open()->info().points;
    Progress::Stage stage(progress, name, points, "points");
    for (const OpenCloud& open : clouds) {
        const auto file = open();
        parallel_for(file->block_count(), [&](std::size_t block) {
            cancel.check();
            PointBatch batch;
            file->read_block(block, batch);
            columns.add(batch);
            stage.advance(batch.size());
        });
    }
    columns.finish();
}

/// Reference points of the 3 × 3 columns around one, in its coordinates.
std::vector<ColumnPoint> surroundings(const PointColumns& reference, Column centre) {
    std::vector<ColumnPoint> all;
    for (std::int64_t dx = -1; dx <= 1; ++dx)
        for (std::int64_t dy = -1; dy <= 1; ++dy)
            for (ColumnPoint p : reference.read({centre.x + dx, centre.y + dy})) {
                p.x += static_cast<float>(static_cast<double>(dx) * PointColumns::kSize_m);
                p.y += static_cast<float>(static_cast<double>(dy) * PointColumns::kSize_m);
                all.push_back(p);
            }
    return all;
}

DistancesByClass compare_column(const PointColumns& simulated, const PointColumns& reference, Column column) {
    DistancesByClass result;
    std::vector<ColumnPoint> far;
    {
        const NeighbourTree tree(reference.read(column));
        for (const ColumnPoint& query : simulated.read(column)) {
            const double distance = tree.distance_to(query);
            if (distance <= kHalo_m)
                result.add(query.label, distance);
            else
                far.push_back(query);
        }
    }
    if (far.empty()) return result;
    const NeighbourTree tree(surroundings(reference, column));
    for (const ColumnPoint& query : far) result.add(query.label, tree.distance_to(query));
    return result;
}

}  // namespace

DistancesByClass cloud_to_cloud(std::span<const OpenCloud> simulated, std::span<const OpenCloud> reference,
                                const std::filesystem::path& temp, const CancelToken& cancel,
                                Progress& progress) {
    PointColumns reference_columns(temp, kHalo_m), simulated_columns(temp, 0);
    scatter(reference, reference_columns, "read reference", cancel, progress);
    scatter(simulated, simulated_columns, "read scans", cancel, progress);
    const std::vector<Column>& columns = simulated_columns.columns();
    Progress::Stage stage(progress, "compare", columns.size(), "columns");
    DistancesByClass result;
    std::mutex mutex;
    parallel_for(columns.size(), [&](std::size_t i) {
        cancel.check();
        const DistancesByClass part = compare_column(simulated_columns, reference_columns, columns[i]);
        stage.advance(1);
        const std::lock_guard lock(mutex);
        result.add(part);
    });
    return result;
}

}  // namespace citysplat::compare
