#include "splat/generation/tile_generation.hpp"

#include "splat/generation/resampling.hpp"

#include <algorithm>

namespace citysplat::splat {
namespace {

/// How far around the core everything is decided, in steps; negative when something in the core is not.
std::int64_t decided_around(const LatticeBox& core, const LatticeBox& covered, const PointCloud& cloud,
                            const Generation& generation) {
    std::int64_t around = std::min({core.min_x - covered.min_x, core.min_y - covered.min_y,
                                    covered.max_x - core.max_x, covered.max_y - core.max_y});
    for (const std::uint32_t i : generation.unknown) {
        const LatticePoint p = cloud.world(i);
        const std::int64_t outside =
            std::max({core.min_x - p.x, p.x - (core.max_x - 1), core.min_y - p.y, p.y - (core.max_y - 1)});
        around = std::min(around, outside - 1);
    }
    return around;
}

std::int64_t wider_halo(const tiling::Region& region, const GenerationSettings& settings) {
    const LatticeBox &core = region.core, &covered = region.covered;
    const std::int64_t halo = std::min({core.min_x - covered.min_x, core.min_y - covered.min_y,
                                        covered.max_x - core.max_x, covered.max_y - core.max_y});
    return std::max(halo + halo / 2, halo + 2 * std::int64_t{settings.widest_radius()});
}

/// Of the neighbourhoods of all groups, surfaces with few points left aside.
std::int64_t usual_radius(const GenerationSettings& settings) {
    std::int64_t radius = settings.mean_radius_steps;
    for (std::size_t group = 0; group < settings.params.group_factor.size(); ++group)
        radius = std::max<std::int64_t>(radius, settings.reaches[group].radius);
    return radius;
}

/// Around the core, within which one generation is nearly always decided by what is there.
std::int64_t generation_halo(const GenerationSettings& settings) {
    const std::int64_t radius = usual_radius(settings);
    const auto suppression =
        static_cast<std::int64_t>(settings.params.suppression * static_cast<double>(radius)) + 1;
    return 2 * radius + 4 * suppression;
}

template <class Keep>
void keep_core(const Generation& generation, const PointCloud& cloud, const LatticeBox& core,
               std::vector<Splat>& out, const Keep& keep) {
    for (std::size_t i = 0; i < generation.splats.size(); ++i) {
        constexpr std::size_t kAhead = 16;  // seeds come in random order
        if (i + kAhead < generation.splats.size()) cloud.fetch(generation.splats[i + kAhead].seed);
        const SeededSplat& s = generation.splats[i];
        const LatticePoint p = cloud.world(s.seed);
        if (core.contains(p.x, p.y) && keep(s.splat.group)) out.push_back(s.splat);
    }
}

}  // namespace

FirstGeneration generate_first(tiling::Region& region, const ClassMap& classes,
                               const GenerationSettings& settings, const CancelToken& cancel) {
    FirstGeneration first;
    {
        const StageTimes::Timer timer(settings.times, Stage::columns);
        first.cloud = make_point_cloud(region.frame, region.points, {}, classes, cancel);
        std::vector<TilePoint>().swap(region.points);
    }
    first.generation = generate(first.cloud, {region.covered, !settings.resamples(), {}}, settings, cancel);
    first.decided_steps = decided_around(region.core, region.covered, first.cloud, first.generation);
    return first;
}

TileSplats make_tile_splats(tiling::Region& region, const ClassMap& classes,
                            const GenerationSettings& settings, double mean_density,
                            const CancelToken& cancel) {
    TileSplats result;
    FirstGeneration first = generate_first(region, classes, settings, cancel);
    const auto stands = [&](SplatGroup group) { return settings.first_stands(group); };
    if (!settings.resamples()) {
        if (first.decided_steps < 0)
            result.wanted_halo_steps = wider_halo(region, settings);
        else
            keep_core(first.generation, first.cloud, region.core, result.splats, stands);
        return result;
    }

    // Centres are complete where no undecided seed can put one; midpoints where all their ends are.
    const std::int64_t radius = settings.mean_radius_steps, to_midpoint = radius / 2 + 2;
    const std::int64_t complete = first.decided_steps - settings.largest_shift() - radius - 1 - to_midpoint;
    if (complete <= 0) {
        result.wanted_halo_steps = wider_halo(region, settings);
        return result;
    }
    keep_core(first.generation, first.cloud, region.core, result.splats, stands);
    const SplatCentres centres(first.generation, first.cloud, settings);
    first = {};
    // Mostly much less than what is complete decides the core.
    for (std::int64_t around = std::min(complete, generation_halo(settings));; around = complete) {
        const LatticeBox covered = region.core.widened(around);
        const ResampledPoints resampled = centres.resample(covered, to_midpoint, mean_density, cancel);
        PointCloud cloud;
        {
            const StageTimes::Timer timer(settings.times, Stage::columns);
            cloud = make_point_cloud(region.frame, resampled.points, resampled.groups, classes, cancel);
        }
        const Generation second = generate(cloud, {covered, true, resampled.discs}, settings, cancel);
        if (decided_around(region.core, covered, cloud, second) >= 0) {
            keep_core(second, cloud, region.core, result.splats, [](SplatGroup) { return true; });
            return result;
        }
        if (around == complete) return {wider_halo(region, settings), {}};
    }
}

std::int64_t initial_halo(const GenerationSettings& settings) {
    const std::int64_t radius = usual_radius(settings);
    // Few points need the widest neighbourhood, and hardly ever one after the other.
    const std::int64_t generation = generation_halo(settings), sparse = settings.widest_radius() - radius;
    if (!settings.resamples()) return generation + 2 * sparse;
    return 2 * generation + sparse + settings.largest_shift() + 2 * std::int64_t{settings.mean_radius_steps};
}

}  // namespace citysplat::splat
