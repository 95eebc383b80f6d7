#include "datasets/truth.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>
#include <vector>

namespace citysplat::synth {

namespace {

/// Indices of a batch ordered by the cell they belong to, as runs of one cell each.
struct Grouped {
    std::vector<std::pair<Cell, std::size_t>> order;

    template <class CellOf>
    Grouped(std::size_t count, CellOf&& cell_of) : order(count) {
        for (std::size_t i = 0; i < count; ++i) order[i] = {cell_of(i), i};
        tbb::parallel_sort(order.begin(), order.end());
    }
    /// visit(cell, begin, end) for each run.
    template <class Visit>
    void for_each_run(Visit&& visit) const {
        for (std::size_t begin = 0; begin < order.size();) {
            std::size_t end = begin;
            while (end < order.size() && order[end].first == order[begin].first) ++end;
            visit(order[begin].first, begin, end);
            begin = end;
        }
    }
};

struct Square {
    double x0, y0, x1, y1;
};
Square square_of(Cell cell) {
    const Vec3d o = cell.origin();
    const double low = -plan::kStreetHalf;
    return {o.x + low, o.y + low, o.x + low + plan::kPitch, o.y + low + plan::kPitch};
}

}  // namespace

struct Truth::Impl {
    TruthFile file;
    Drive drive;
    Actors actors;
    std::mutex turn;
    BlockCache cache;

    explicit Impl(TruthFile f)
        : file(std::move(f)),
          drive(file.drive_params()),
          actors(file.options.seed),
          cache(file.options.seed) {}

    Vec3d to_city(Vec3d world) const { return world - file.options.origin_m; }

    /// Calls answer(scene, i) for each item i, in parallel, with a scene that holds everything within reach_m
    /// of the item's cell.
    template <class PositionOf, class Answer>
    void for_each(std::size_t count, double reach_m, PositionOf&& position_of, Answer&& answer) {
        const std::lock_guard lock(turn);
        const Grouped grouped(count, [&](std::size_t i) {
            const Vec3d p = position_of(i);
            return cell_at(p.x, p.y);
        });
        grouped.for_each_run([&](Cell cell, std::size_t begin, std::size_t end) {
            const Square s = square_of(cell);
            const auto cells = cells_near(s.x0, s.y0, s.x1, s.y1, reach_m);
            const auto scene = cache.scene(cell, cells);
            tbb::parallel_for(tbb::blocked_range<std::size_t>(begin, end, 256), [&](const auto& range) {
                for (std::size_t k = range.begin(); k < range.end(); ++k)
                    answer(*scene, grouped.order[k].second);
            });
        });
    }
};

Truth::Truth(TruthFile file) : impl_(std::make_unique<Impl>(std::move(file))) {}
Truth::~Truth() = default;
Truth::Truth(Truth&&) noexcept = default;

Truth Truth::load(const std::filesystem::path& path) {
    return Truth(TruthFile::read(std::filesystem::is_directory(path) ? path / "truth.json" : path));
}

const TruthFile& Truth::file() const { return impl_->file; }

void Truth::nearest(std::span<const Vec3d> points, double max_distance_m, std::span<Nearest> out) const {
    assert(points.size() == out.size());
    impl_->for_each(
        points.size(), max_distance_m, [&](std::size_t i) { return impl_->to_city(points[i]); },
        [&](const CityScene& scene, std::size_t i) {
            const auto found = scene.nearest(impl_->to_city(points[i]), max_distance_m);
            out[i] = found ? Nearest{found->distance_m, found->look.label, true}
                           : Nearest{max_distance_m, 0, false};
        });
}

void Truth::nearest_at(std::span<const Vec3d> points, std::span<const double> gps_time, double max_distance_m,
                       std::span<Nearest> out) const {
    assert(points.size() == gps_time.size());
    nearest(points, max_distance_m, out);
    constexpr double kActorReach_m = 4;
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, points.size(), 256), [&](const auto& range) {
        std::vector<Actor> actors;
        for (std::size_t i = range.begin(); i < range.end(); ++i) {
            const double time_s = gps_time[i] - Drive::kBegin_s;
            const Vec3d p = impl_->to_city(points[i]), sensor = impl_->drive.true_pose_at(time_s).translation;
            Crowd crowd(impl_->actors, {p.x, p.y, kActorReach_m + max_distance_m}, {time_s, time_s});
            crowd.at(time_s, sensor.x, sensor.y, actors);
            if (const auto found = synth::nearest(actors, p, out[i].distance_m))
                out[i] = {found->distance_m, found->look.label, true};
        }
    });
}

void Truth::intersect(std::span<const WorldRay> rays, double max_range_m, std::span<Hit> out) const {
    assert(rays.size() == out.size());
    impl_->for_each(
        rays.size(), max_range_m, [&](std::size_t i) { return impl_->to_city(rays[i].origin); },
        [&](const CityScene& scene, std::size_t i) {
            const auto hit =
                scene.intersect({impl_->to_city(rays[i].origin), rays[i].direction}, max_range_m);
            out[i] = hit ? Hit{hit->t, hit->normal, hit->look.label, true} : Hit{};
        });
}

Pose Truth::true_pose(double gps_time) const {
    Pose pose = impl_->drive.true_pose_at(gps_time - Drive::kBegin_s);
    pose.translation = pose.translation + impl_->file.options.origin_m;
    return pose;
}

Vec3d Truth::without_localisation_error(Vec3d point, double gps_time) const {
    if (impl_->file.options.localisation_m == 0) return point;
    const double time_s = gps_time - Drive::kBegin_s;
    const Pose recorded = impl_->drive.recorded_pose_at(time_s), actual = impl_->drive.true_pose_at(time_s);
    const Vec3d in_body = inverse(recorded).apply(impl_->to_city(point));
    return actual.apply(in_body) + impl_->file.options.origin_m;
}

}  // namespace citysplat::synth
