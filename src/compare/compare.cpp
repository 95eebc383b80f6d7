#include "compare/compare.hpp"

#include "compare/point_columns.hpp"
#include "core/parallel.hpp"

#include <nanoflann.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <tuple>

namespace citysplat::compare {

namespace {

/// Nearest neighbours within this are found in the column and its halo; the few others look farther.
constexpr double kHalo_m = 1.0;

class NeighbourTree {
  public:
    explicit NeighbourTree(std::vector<ColumnPoint> points)
        : points_(sorted(std::move(points))), tree_(3, *this, {16}) {}

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
    /// Of several neighbours that are as far in float the tree takes one by its order: it must not depend on
    /// who read the points first. One point of each place is enough: a query looks at all that are as far as
    /// the nearest, and would look at thousands in the place where a sensor stood.
    static std::vector<ColumnPoint> sorted(std::vector<ColumnPoint> points) {
        std::sort(points.begin(), points.end(), [](const ColumnPoint& a, const ColumnPoint& b) {
            return std::tie(a.x, a.y, a.z) < std::tie(b.x, b.y, b.z);
        });
        const auto same_place = [](const ColumnPoint& a, const ColumnPoint& b) {
            return a.x == b.x && a.y == b.y && a.z == b.z;
        };
        points.erase(std::unique(points.begin(), points.end(), same_place), points.end());
        return points;
    }
    using Tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<float, NeighbourTree>,
                                                     NeighbourTree, 3, std::uint32_t>;
    std::vector<ColumnPoint> points_;
    Tree tree_;
};

struct Scattered {
    const char* name;
    std::span<const OpenCloud> clouds;
    const Region* region = nullptr;
};

void scatter(const Scattered& what, PointColumns& columns, const CancelToken& cancel, Progress& progress) {
    std::uint64_t points = 0;
    for (const OpenCloud& open : what.clouds) points += open()->info().points;
    Progress::Stage stage(progress, what.name, points, "points");
    for (const OpenCloud& open : what.clouds) {
        const auto file = open();
        parallel_for(file->block_count(), [&](std::size_t block) {
            cancel.check();
            PointBatch batch;
            file->read_block(block, batch);
            columns.add(batch, what.region);
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

struct BothClouds {
    const PointColumns &simulated, &reference;
};

/// Calls found(point, distance) for every simulated point of a column.
template <class Found>
void compare_column(const BothClouds& clouds, Column column, const CancelToken& cancel, const Found& found) {
    constexpr std::size_t kUnchecked = 4096;  // queries between two looks at `cancel`
    const auto& [simulated, reference] = clouds;
    std::vector<ColumnPoint> far;
    std::size_t asked = 0;
    {
        const NeighbourTree tree(reference.read(column));
        for (const ColumnPoint& query : simulated.read(column)) {
            if (asked++ % kUnchecked == 0) cancel.check();
            const double distance = tree.distance_to(query);
            if (distance <= kHalo_m)
                found(query, distance);
            else
                far.push_back(query);
        }
    }
    if (far.empty()) return;
    const NeighbourTree tree(surroundings(reference, column));
    for (const ColumnPoint& query : far) {
        if (asked++ % kUnchecked == 0) cancel.check();
        found(query, tree.distance_to(query));
    }
}

PointDistance in_world(Column column, const ColumnPoint& p, double distance_m) {
    const auto from = [](std::int64_t index, float offset) {
        return static_cast<double>(index) * PointColumns::kSize_m + static_cast<double>(offset);
    };
    return {{from(column.x, p.x), from(column.y, p.y), static_cast<double>(p.z)}, distance_m, p.label};
}

bool comes_before(const PointDistance& a, const PointDistance& b) {
    return std::tie(a.at.x, a.at.y, a.at.z, a.label, a.distance_m) <
           std::tie(b.at.x, b.at.y, b.at.z, b.label, b.distance_m);
}

}  // namespace

DistancesByClass cloud_to_cloud(const ComparedClouds& clouds, const std::filesystem::path& temp,
                                const CancelToken& cancel, Progress& progress, const TakeDistances& take) {
    PointColumns reference_columns(temp, kHalo_m), simulated_columns(temp, 0);
    scatter({"read reference", clouds.reference}, reference_columns, cancel, progress);
    scatter({"read scans", clouds.simulated, clouds.region}, simulated_columns, cancel, progress);
    const std::vector<Column>& columns = simulated_columns.columns();
    Progress::Stage stage(progress, "compare", columns.size(), "columns");
    DistancesByClass result;
    std::mutex mutex;
    // Columns whose points wait for their turn to be taken.
    const std::size_t at_a_time = take ? 32 : columns.size();
    for (std::size_t first = 0; first < columns.size(); first += at_a_time) {
        std::vector<std::vector<PointDistance>> waiting(std::min(at_a_time, columns.size() - first));
        parallel_for(waiting.size(), [&](std::size_t i) {
            cancel.check();
            const Column column = columns[first + i];
            DistancesByClass part;
            compare_column({simulated_columns, reference_columns}, column, cancel,
                           [&](const ColumnPoint& point, double distance_m) {
                               part.add(point.label, distance_m);
                               if (take) waiting[i].push_back(in_world(column, point, distance_m));
                           });
            std::sort(waiting[i].begin(), waiting[i].end(), comes_before);
            stage.advance(1);
            const std::lock_guard lock(mutex);
            result.add(part);
        });
        for (const auto& points : waiting)
            if (take) take(points);
    }
    return result;
}

}  // namespace citysplat::compare
