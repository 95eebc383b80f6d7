#include "splat/generation/generation.hpp"

#include "splat/generation/selection.hpp"
#include "splat/generation/surface.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::splat {

GenerationSettings::GenerationSettings(const SplatParams& p, const tiling::Calibration& calibration,
                                       StageTimes* stage_times)
    : params(p), times(stage_times) {
    const double radius = calibration.mean_radius_m * static_cast<double>(kLatticePerMetre);
    const double error = calibration.mean_error_m * static_cast<double>(kLatticePerMetre);
    const auto reach = [&](double factor, double least_m) -> Reach {
        const double least = least_m * static_cast<double>(kLatticePerMetre);
        const double k = std::floor(factor * p.neighbours + 0.5);
        const double r = std::floor(std::max(factor * radius, least) + 0.5);
        return {static_cast<std::int32_t>(std::max(3.0, k)),
                static_cast<std::int32_t>(std::clamp(r, 1.0, double{kMaxReach}))};
    };
    crease_noise_steps = p.crease_noise * error;
    double widest = 1, widest_m = 0, largest_error = 1;
    for (std::size_t g = 0; g < p.group_factor.size(); ++g) {
        reaches[g] = reach(p.group_factor[g], p.least_reach_m[g]);
        error_steps[g] = p.error_factor[g] * error;
        lateral_noise_steps[g] = p.lateral_noise[g] * error;
        least_radius_steps[g] =
            p.least_points[g] == 1 ? p.least_radius_m * static_cast<double>(kLatticePerMetre) : 0;
        widest = std::max(widest, p.group_factor[g]);
        widest_m = std::max(widest_m, p.least_reach_m[g]);
        largest_error = std::max(largest_error, p.error_factor[g]);
    }
    constexpr auto kSurface = static_cast<std::size_t>(SplatGroup::surface);
    reaches[kSparseReach] =
        reach(p.group_factor[kSurface], std::max(p.least_reach_m[kSurface], p.sparse_reach_m));
    reaches[kSparseReach].k = p.sparse_neighbours;
    error_steps[kSparseReach] = error_steps[kSurface];
    widest_m = std::max(widest_m, p.sparse_reach_m);
    reaches[kPlainReach] = reach(1, 0);
    error_steps[kPlainReach] = error;
    reaches[kWidestReach] = reach(widest, widest_m);
    error_steps[kWidestReach] = largest_error * error;
    mean_radius_steps = reaches[kPlainReach].radius;
    const double range_step = static_cast<double>(kLatticePerMetre) / TilePoint::kSensorStepsPerMetre;
    radius_of_range = p.range_radius * calibration.angular_step_rad * range_step;
    line_radius_of_range = p.line_range_radius * calibration.angular_step_rad * range_step;
    range_radius_limit_steps = p.range_radius_limit_m * static_cast<double>(kLatticePerMetre);
}

std::int32_t GenerationSettings::widest_suppression() const {
    double radius = widest_radius();
    for (const double least : least_radius_steps) radius = std::max(radius, least);
    return static_cast<std::int32_t>(std::ceil(params.suppression * radius)) + 1;
}

std::int32_t GenerationSettings::largest_shift() const {
    // Along the normal by the mean error of the points, in the plane to the middle of them.
    const double along = std::min(error_steps[kWidestReach], double{kMaxReach});
    return static_cast<std::int32_t>(std::ceil(along)) + widest_radius() + 1;
}

CoveredEdge::CoveredEdge(const LatticeBox& covered, const TileFrame& frame) {
    const LatticePoint o = frame.origin();
    min_x_ = covered.min_x - 1 - o.x;
    min_y_ = covered.min_y - 1 - o.y;
    max_x_ = covered.max_x - o.x;
    max_y_ = covered.max_y - o.y;
}

Generation generate(PointCloud& cloud, const GenerationTask& task, const GenerationSettings& settings,
                    const CancelToken& cancel) {
    const CoveredEdge edge(task.covered, cloud.frame);
    const NeighbourIndex index = [&] {
        const StageTimes::Timer timer(settings.times, Stage::columns);
        return NeighbourIndex(cloud.x, cloud.y, cloud.z, cloud.rank);
    }();
    const Surface surface = find_surface({cloud, index, edge, settings, task.discs}, cancel);
    return select_splats({cloud, index, surface, edge, settings, task.observe, task.discs}, cancel);
}

}  // namespace citysplat::splat
