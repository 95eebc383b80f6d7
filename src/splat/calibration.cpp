#include "splat/calibration.hpp"

#include "core/parallel.hpp"
#include "splat/city_sample.hpp"
#include "splat/city_thickness.hpp"
#include "splat/generation/generation.hpp"
#include "splat/search/plane_fit.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace citysplat::splat {
namespace {

using tiling::RegionReader;

/// A weighted mean of whole numbers.
struct Mean {
    std::atomic<std::uint64_t> total{0}, weight{0};
    double value() const {
        return weight == 0 ? 0.0 : static_cast<double>(total.load()) / static_cast<double>(weight.load());
    }
};

/// Fractions of a step in which distances are summed.
constexpr double kParts = 64;
/// Fractions in which balls and square roots of densities are.
constexpr double kBallParts = 256, kRootParts = 4096;

std::uint64_t in_parts(double steps) { return static_cast<std::uint64_t>(steps * kParts + 0.5); }

void add_radii(const SampledPlace& place, Mean& mean) {
    std::uint64_t total = 0, weight = 0;
    for (const SampledPoint& p : place.points) {
        total += p.weight * in_parts(std::sqrt(static_cast<double>(p.reach2)));
        weight += p.weight;
    }
    mean.total += total;
    mean.weight += weight;
}

/// Distances of the neighbours within `radius` from the planes through them.
void add_errors(const SampledPlace& place, std::int32_t radius, Mean& mean) {
    std::vector<Moments> moments(place.points.size());
    std::vector<PlaneFit> fits(moments.size());
    const double radius2 = static_cast<double>(radius) * radius;
    const auto for_each_near = [&](std::size_t i, const auto& body) {
        for (const NeighbourOffset& offset : place.neighbours(place.points[i])) {
            if (offset.distance2() > radius2) break;
            body(offset.vector());
        }
    };
    for (std::size_t i = 0; i < moments.size(); ++i) for_each_near(i, [&](Vec3d d) { moments[i].add(d); });
    fit_planes(moments, fits);
    std::uint64_t total = 0, weight = 0;
    for (std::size_t i = 0; i < moments.size(); ++i) {
        std::uint64_t errors = 0;
        for_each_near(i, [&](Vec3d d) { errors += in_parts(std::fabs(dot(fits[i].normal, d))); });
        total += place.points[i].weight * errors;
        weight += place.points[i].weight * static_cast<std::uint64_t>(moments[i].count);
    }
    mean.total += total;
    mean.weight += weight;
}

/// Points within `radius` of the sampled one, itself included. Beyond the neighbours that are known the
/// surface is taken to go on as densely.
double count_within(std::span<const NeighbourOffset> neighbours, double reach2, double radius) {
    const double radius2 = radius * radius;
    if (radius2 > reach2) return static_cast<double>(neighbours.size()) * radius2 / reach2;
    const auto end = std::partition_point(neighbours.begin(), neighbours.end(),
                                          [&](const NeighbourOffset& d) { return d.distance2() <= radius2; });
    return static_cast<double>(end - neighbours.begin());
}

/// Points where discs of diameter d lie at random until no more fit cover 0.547 of the plane: of the points
/// within d of each other, so many become seeds (random sequential adsorption, Feder 1980).
constexpr double kSeedsAmongSuppressed = 4 * 0.547;

/// The number of splats to expect within R̄ of a point. Its splat reaches as far as its neighbourhood and
/// keeps others from starting within α times that; of the points within R̄ one in so many becomes a seed.
double expected_density(const SampledPlace& place, const SampledPoint& p, const GenerationSettings& settings,
                        double points_in_ball) {
    const auto neighbours = place.neighbours(p);
    const Reach& reach = settings.reaches[static_cast<std::size_t>(p.group)];
    const double reach2 = p.reach2, radius = reach.radius;
    // That of the k-th neighbour grows with the square root of k.
    const double to_kth = std::sqrt(reach2 * reach.k / settings.params.neighbours);
    const double grown =
        static_cast<int>(neighbours.size()) < settings.params.neighbours ? radius : std::min(radius, to_kth);
    const double suppressed = count_within(neighbours, reach2, settings.params.suppression * grown) - 1;
    return std::max(1.0, points_in_ball / (1 + suppressed / kSeedsAmongSuppressed));
}

/// Square roots of the expected densities — how many splats follow one another across a ball — each ball of
/// radius R̄ once, however many points it holds.
void add_densities(const SampledPlace& place, const GenerationSettings& settings, Mean& mean) {
    std::uint64_t total = 0, weight = 0;
    for (const SampledPoint& p : place.points) {
        if (settings.params.method == Method::adaptive && settings.first_stands(p.group)) continue;
        const double in_ball = count_within(place.neighbours(p), p.reach2, settings.mean_radius_steps);
        const double density = expected_density(place, p, settings, in_ball);
        const auto balls = static_cast<std::uint64_t>(kBallParts * p.weight / in_ball + 0.5);
        total += balls * static_cast<std::uint64_t>(kRootParts * std::sqrt(density) + 0.5);
        weight += balls;
    }
    mean.total += total;
    mean.weight += weight;
}

/// The median of what the sampled points tell; 0 when too few do. Places count alike, however many points the
/// sampled ones stand for: where the sensor stood for long, scans lie on top of one another.
double median_step_rad(std::span<const SampledPlace> sample) {
    constexpr std::size_t kFewest = 100;
    std::vector<std::uint32_t> steps;
    for (const SampledPlace& place : sample)
        for (const SampledPoint& p : place.points)
            if (p.step > 0) steps.push_back(p.step);
    if (steps.size() < kFewest) return 0;
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    return static_cast<double>(*middle) / kAngleOne;
}

}  // namespace

MeasuredCity measure_city(const SplatParams& params, const ClassMap& classes, const RegionReader& reader,
                          const CancelToken& cancel, Progress& progress) {
    tiling::Calibration result;
    const SamplePlan plan = plan_sample(reader);
    std::vector<SampledPlace> sample(plan.places.size());
    const ClassTable table(classes);
    ThicknessSample thickness(plan.places, reader, table);
    Mean radius, error, root_density;
    {
        const Reach reach{params.neighbours, static_cast<std::int32_t>(to_lattice(params.radius_cap_m))};
        Progress::Stage report(progress, "measuring neighbourhoods", sample.size(), "places");
        for_each_chunk(sample.size(), 1, cancel, [&](std::size_t i, std::size_t) {
            sample[i] = sample_place({reader, reach, plan, table, &thickness}, i);
            add_radii(sample[i], radius);
            report.advance(1);
        });
    }
    for (const SampledPlace& place : sample) result.samples += place.points.size();
    result.mean_radius_m = radius.value() / kParts * kLatticeStep_m;
    const GenerationSettings settings(params, result);
    for_each_chunk(sample.size(), 1, cancel, [&](std::size_t i, std::size_t) {
        add_errors(sample[i], settings.mean_radius_steps, error);
        if (settings.resamples()) add_densities(sample[i], settings, root_density);
    });
    result.mean_error_m = error.value() / kParts * kLatticeStep_m;
    const double across = root_density.value() / kRootParts;
    result.mean_density = across * across;
    result.angular_step_rad = median_step_rad(sample);
    return {result, thickness.result()};
}

}  // namespace citysplat::splat
