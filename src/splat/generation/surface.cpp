#include "splat/generation/surface.hpp"

#include "core/parallel.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <cmath>
#include <numeric>

namespace citysplat::splat {
namespace {

/// So few centres of discs make a worse normal than each of the discs has.
constexpr std::int32_t kFewest = 4;

/// A point this close to its plane is never an outlier: the lattice itself rounds by half a step an axis.
constexpr double kLeastOutlier_steps = 2.0;

/// A point is judged by the plane of its own neighbourhood: σ is the root mean square distance of the
/// neighbours from it (the square root of λ3), and the point goes when it lies beyond `sigmas` times that.
/// (The paper removes a *neighbour* beyond 3σ_i of any p_i; judging each point once, by its own plane, does
/// not depend on an order.)
bool is_outlier(const PlaneFit& fit, double sigmas) {
    return sigmas > 0 && fit.offset > kLeastOutlier_steps &&
           fit.offset * fit.offset > sigmas * sigmas * fit.share3 * fit.variance;
}

/// Eq. 7: the largest of linearity, planarity and sphericity.
SplatGroup shape_group(const PlaneFit& fit) {
    const double linearity = fit.share1 - fit.share2, planarity = fit.share2 - fit.share3;
    if (planarity >= linearity && planarity >= fit.share3) return SplatGroup::surface;
    return linearity >= fit.share3 ? SplatGroup::linear : SplatGroup::non_surface;
}

/// SplatParams::range_radius, or line_range_radius on a lone line. Where scans lie on top of one another a
/// return stands for less: for its share of the area of the neighbourhood.
std::uint16_t least_radius(const PointAttributes& a, const Moments& m, bool lone_line,
                           const GenerationSettings& settings) {
    const double of_range = lone_line ? settings.line_radius_of_range : settings.radius_of_range;
    const double share = settings.params.range_radius_spacing *
                         std::sqrt(static_cast<double>(m.reach2) / static_cast<double>(m.count));
    const double radius = std::min({of_range * a.range, settings.range_radius_limit_steps, share});
    return static_cast<std::uint16_t>(std::min(radius + 0.5, 65535.0));
}

std::uint16_t kind_of(const PointCloud& cloud, std::size_t i, Method method) {
    switch (method) {
        case Method::basic:
        case Method::descriptors:  // shapes of noisy neighbourhoods flicker from point to point
        case Method::surfels:      // do not grow
            return 0;
        case Method::adaptive:
            return cloud.attributes[i].label;
    }
    return 0;
}

struct Worker {
    SearchScratch scratch;
    std::vector<std::uint32_t> points;
    std::vector<Moments> moments;
    std::vector<PlaneFit> fits;
    // Of points with few neighbours:
    std::vector<std::uint32_t> sparse;
    NeighbourLists lists;
    std::vector<Moments> wide_moments;
    std::vector<PlaneFit> wide_fits;
};

/// Sums over the neighbours of a query that are of its class.
Moments moments_of_class(const PointCloud& cloud, std::uint32_t query, const Neighbours& neighbours) {
    Moments m{};
    m.reach2 = neighbours.reach2;
    for (std::size_t i = 0; i < neighbours.size(); ++i)
        if (cloud.attributes[neighbours.point[i]].label == cloud.attributes[query].label)
            m.add(neighbours.offset(i));
    return m;
}

/// A few returns a square metre are all there is of a far wall, and a lone scan line says little about the
/// surface it is on. There the plane is asked of a wider ball, among points of the same class, and taken if
/// they lie on one. The reach class of these points becomes kSparseReach.
void widen_sparse(std::size_t begin, const SurfaceTask& task, Surface& surface, Worker& w) {
    const PointCloud& cloud = task.cloud;
    const GenerationSettings& settings = task.settings;
    constexpr std::int32_t kFewestOnPlane = 5;
    constexpr double kLine = 0.05;  // a single scan line says nothing about the plane
    const bool by_shape = settings.params.method == Method::descriptors;
    w.sparse.clear();
    for (std::size_t i = 0; i < w.points.size(); ++i) {
        const SplatGroup group = by_shape ? shape_group(w.fits[i]) : cloud.group[begin + i];
        if (w.moments[i].count < settings.params.sparse_points[static_cast<std::size_t>(group)] ||
            (by_shape && group == SplatGroup::linear))
            w.sparse.push_back(w.points[i]);
    }
    for (const std::uint32_t p : w.sparse) surface.reach_class[p] = kSparseReach;
    find_neighbours(task.index, {w.sparse, surface.reach_class, settings.reaches}, w.lists, w.scratch);
    w.wide_moments.clear();
    for (std::size_t q = 0; q < w.sparse.size(); ++q)
        w.wide_moments.push_back(moments_of_class(cloud, w.sparse[q], w.lists[q]));
    w.wide_fits.resize(w.sparse.size());
    fit_planes(w.wide_moments, w.wide_fits);
    for (std::size_t q = 0; q < w.sparse.size(); ++q) {
        const std::uint32_t p = w.sparse[q];
        const PlaneFit& fit = w.wide_fits[q];
        const double bound = settings.params.sparse_thickness * settings.error_steps[kSparseReach];
        const bool known = task.edge.encloses(cloud.x[p], cloud.y[p], w.wide_moments[q].reach2);
        const bool flat = w.wide_moments[q].count >= kFewestOnPlane && fit.share2 > kLine &&
                          fit.share3 * fit.variance <= bound * bound;
        if (known && !flat) {
            const bool lone_line =
                by_shape && w.wide_moments[q].count >= kFewestOnPlane && fit.share2 <= kLine;
            if (lone_line)
                surface.least_radius[p] =
                    least_radius(cloud.attributes[p], w.moments[p - begin], true, settings);
            surface.reach_class[p] = static_cast<std::uint8_t>(cloud.group[p]);
            continue;
        }
        w.moments[p - begin] = w.wide_moments[q];
        w.fits[p - begin] = fit;
    }
}

}  // namespace

Oriented orient(const PlaneFit& fit, const PointAttributes& a) {
    Vec3d n = fit.normal;
    if (a.has_sensor()) {
        const Vec3d s = a.to_sensor();
        if (fit.shape == PlaneFit::Shape::line) {
            const Vec3d across = s - fit.axis * dot(s, fit.axis);
            if (dot(across, across) > 1e-6 * dot(s, s)) n = normalized(across);
        }
        const double side = dot(n, s);
        if (side != 0) return {side < 0 ? -n : n, true};
    }
    const bool down = n.z < 0 || (n.z == 0 && (n.y < 0 || (n.y == 0 && n.x < 0)));
    return {down ? -n : n, false};
}

Vec3d facing_normal(const Moments& m, Vec3d to_sensor, double noise) {
    const auto n = static_cast<double>(m.count);
    const double ridge = noise * noise;
    const double xx = (m.sum_xx - m.sum_x * m.sum_x / n) / n + ridge,
                 yy = (m.sum_yy - m.sum_y * m.sum_y / n) / n + ridge,
                 zz = (m.sum_zz - m.sum_z * m.sum_z / n) / n + ridge,
                 xy = (m.sum_xy - m.sum_x * m.sum_y / n) / n, xz = (m.sum_xz - m.sum_x * m.sum_z / n) / n,
                 yz = (m.sum_yz - m.sum_y * m.sum_z / n) / n;
    // The inverse is the adjugate but for a positive factor.
    const double a_xy = xz * yz - xy * zz, a_xz = xy * yz - xz * yy, a_yz = xy * xz - xx * yz;
    const Vec3d row_x{yy * zz - yz * yz, a_xy, a_xz}, row_y{a_xy, xx * zz - xz * xz, a_yz},
        row_z{a_xz, a_yz, xx * yy - xy * xy};
    return normalized(Vec3d{dot(row_x, to_sensor), dot(row_y, to_sensor), dot(row_z, to_sensor)});
}

Surface find_surface(const SurfaceTask& task, const CancelToken& cancel) {
    PointCloud& cloud = task.cloud;
    const GenerationSettings& settings = task.settings;
    const std::size_t n = cloud.size();
    const Method method = settings.params.method;
    const bool by_shape = method == Method::descriptors, second = !task.discs.empty();
    Surface surface;
    surface.brief.resize(n), surface.normal.resize(n), surface.reach_class.resize(n);
    if (!by_shape) surface.reach2.resize(n);
    surface.least_radius.resize(n);
    // Groups by label choose the neighbourhood; groups by shape come out of the plain one.
    for (std::size_t i = 0; i < n; ++i)
        surface.reach_class[i] =
            method == Method::adaptive ? static_cast<std::uint8_t>(cloud.group[i]) : kPlainReach;

    tbb::enumerable_thread_specific<Worker> workers;
    for_each_chunk(n, 4096, cancel, [&](std::size_t begin, std::size_t end) {
        Worker& w = workers.local();
        w.points.resize(end - begin), w.moments.resize(end - begin), w.fits.resize(end - begin);
        std::iota(w.points.begin(), w.points.end(), static_cast<std::uint32_t>(begin));
        {
            const StageTimes::Timer timer(settings.times, Stage::plane_search);
            find_moments(task.index, {w.points, surface.reach_class, settings.reaches}, w.moments, w.scratch);
        }
        const StageTimes::Timer timer(settings.times, Stage::planes);
        fit_planes(w.moments, w.fits);
        for (std::size_t i = begin; i < end; ++i)
            surface.least_radius[i] =
                second ? task.discs[cloud.rank[i]].least_radius
                       : least_radius(cloud.attributes[i], w.moments[i - begin], false, settings);
        if (!second && settings.params.sparse_reach_m > 0) widen_sparse(begin, task, surface, w);
        for (std::size_t i = begin; i < end; ++i) {
            const PlaneFit& fit = w.fits[i - begin];
            const bool known = task.edge.encloses(cloud.x[i], cloud.y[i], w.moments[i - begin].reach2);
            if (!by_shape) surface.reach2[i] = w.moments[i - begin].reach2;
            if (by_shape && !second) cloud.group[i] = shape_group(fit);
            const double noise = settings.lateral_noise_steps[static_cast<std::size_t>(cloud.group[i])];
            const PointAttributes& a = cloud.attributes[i];
            const bool facing = noise > 0 && a.has_sensor() && dot(a.to_sensor(), a.to_sensor()) > 0;
            const FirstDisc* disc =
                second && w.moments[i - begin].count < kFewest ? &task.discs[cloud.rank[i]] : nullptr;
            const Oriented o = disc ? Oriented{vec_cast<double>(disc->normal), disc->oriented}
                               : facing
                                   ? Oriented{facing_normal(w.moments[i - begin], a.to_sensor(), noise), true}
                                   : orient(fit, a);
            surface.normal[i] = vec_cast<float>(o.normal);
            surface.brief[i] = {surface.normal[i],
                                kind_of(cloud, i, method),
                                {known, is_outlier(fit, settings.params.denoise_sigmas), o.known}};
        }
    });
    if (by_shape) {
        for (std::size_t i = 0; i < n; ++i)
            surface.reach_class[i] =
                surface.brief[i].known() || second ? static_cast<std::uint8_t>(cloud.group[i]) : kWidestReach;
    }
    return surface;
}

}  // namespace citysplat::splat
