#include "datasets/synth/truth.hpp"

#include "core/parallel.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>
#include <vector>

namespace citysplat::synth {

namespace {

/// The rectangle of cells that an item needs.
struct CellRange {
    Cell low, high;
    friend auto operator<=>(const CellRange&, const CellRange&) = default;

    static CellRange around(Vec3d p, double reach_m) {
        const double reach = reach_m + kOverhang_m;
        return {cell_at(p.x - reach, p.y - reach), cell_at(p.x + reach, p.y + reach)};
    }
    std::vector<Cell> cells() const {
        std::vector<Cell> all;
        for (std::int32_t i = low.i; i <= high.i; ++i)
            for (std::int32_t j = low.j; j <= high.j; ++j) all.push_back({i, j});
        return all;
    }
};

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
    /// of the item. Items that need the same cells are answered together.
    template <class PositionOf, class Answer>
    void for_each(std::size_t count, double reach_m, PositionOf&& position_of, Answer&& answer) {
        const std::lock_guard lock(turn);
        std::vector<std::pair<CellRange, std::size_t>> order(count);
        for (std::size_t i = 0; i < count; ++i) order[i] = {CellRange::around(position_of(i), reach_m), i};
        std::sort(order.begin(), order.end());
        for (std::size_t begin = 0; begin < count;) {
            const CellRange needed = order[begin].first;
            std::size_t end = begin;
            while (end < count && order[end].first == needed) ++end;
            const auto scene = cache.scene(needed.low, needed.cells());
            parallel_ranges(end - begin, 256, [&](std::size_t from, std::size_t to) {
                for (std::size_t k = begin + from; k < begin + to; ++k) answer(*scene, order[k].second);
            });
            begin = end;
        }
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
    parallel_ranges(points.size(), 256, [&](std::size_t begin, std::size_t end) {
        std::vector<Actor> actors;
        for (std::size_t i = begin; i < end; ++i) {
            const double time_s = gps_time[i] - Drive::kBegin_s;
            const Vec3d p = impl_->to_city(points[i]);
            Crowd crowd(impl_->actors, {p.x, p.y, kActorReach_m + max_distance_m}, {time_s, time_s});
            if (crowd.empty()) continue;
            const Vec3d sensor = impl_->drive.true_pose_at(time_s).translation;
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

void Truth::intersect_at(std::span<const WorldRay> rays, std::span<const double> gps_time, double max_range_m,
                         std::span<Hit> out) const {
    assert(rays.size() == gps_time.size());
    intersect(rays, max_range_m, out);
    constexpr double kActorReach_m = 4;
    parallel_ranges(rays.size(), 1024, [&](std::size_t begin, std::size_t end) {
        Box3d places = kEmptyBox;
        double first_s = 1e300, last_s = -1e300;
        for (std::size_t i = begin; i < end; ++i) {
            places.grow(impl_->to_city(rays[i].origin));
            first_s = std::min(first_s, gps_time[i] - Drive::kBegin_s);
            last_s = std::max(last_s, gps_time[i] - Drive::kBegin_s);
        }
        const Vec3d middle = 0.5 * (places.min + places.max);
        const double reach_m = length(places.max - places.min) / 2 + max_range_m + kActorReach_m;
        Crowd crowd(impl_->actors, {middle.x, middle.y, reach_m}, {first_s, last_s});
        std::vector<Actor> actors;
        double asked_s = -1e300;
        for (std::size_t i = begin; i < end && !crowd.empty(); ++i) {
            const double time_s = gps_time[i] - Drive::kBegin_s;
            if (time_s != asked_s) {
                const Vec3d sensor = impl_->drive.true_pose_at(time_s).translation;
                crowd.at(time_s, sensor.x, sensor.y, actors);
                asked_s = time_s;
            }
            const Ray ray{impl_->to_city(rays[i].origin), rays[i].direction};
            const auto hit = synth::intersect(actors, ray, out[i].found ? out[i].range_m : max_range_m);
            if (hit) out[i] = {hit->encounter.t, hit->encounter.normal, hit->look.label, true};
        }
    });
}

Pose Truth::true_pose(double gps_time) const {
    Pose pose = impl_->drive.true_pose_at(gps_time - Drive::kBegin_s);
    pose.translation = pose.translation + impl_->file.options.origin_m;
    return pose;
}

Pose Truth::recorded_pose(double gps_time) const {
    Pose pose = impl_->drive.recorded_pose_at(gps_time - Drive::kBegin_s);
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
