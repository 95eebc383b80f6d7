#include "splat/generation/resampling.hpp"

#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"
#include "splat/search/curve.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

namespace citysplat::splat {

namespace {

/// Moves a point and leaves its sensor where it is.
void move(TilePoint& p, std::int32_t x, std::int32_t y, std::int32_t z) {
    constexpr auto kStep = static_cast<std::int32_t>(kLatticePerMetre / TilePoint::kSensorStepsPerMetre);
    const auto moved = [](std::int16_t sensor, std::int32_t by) {
        const std::int64_t steps = sensor - floor_div(std::int64_t{by} + kStep / 2, kStep);
        return static_cast<std::int16_t>(std::clamp<std::int64_t>(steps, INT16_MIN + 1, INT16_MAX));
    };
    if (p.has_sensor()) {
        p.sensor_dx = moved(p.sensor_dx, x - p.x);
        p.sensor_dy = moved(p.sensor_dy, y - p.y);
        p.sensor_dz = moved(p.sensor_dz, z - p.z);
    }
    p.x = x, p.y = y, p.z = z;
}

}  // namespace

SplatCentres::SplatCentres(const Generation& generation, const PointCloud& cloud,
                           const GenerationSettings& settings)
    : frame_(cloud.frame), settings_(settings) {
    centres_.reserve(generation.splats.size());
    for (std::size_t i = 0; i < generation.splats.size(); ++i) {
        constexpr std::size_t kAhead = 16;  // seeds come in random order
        if (i + kAhead < generation.splats.size()) cloud.fetch(generation.splats[i + kAhead].seed);
        const SeededSplat& s = generation.splats[i];
        if (settings.first_stands(s.splat.group)) continue;
        const PointAttributes& a = cloud.attributes[s.seed];
        TilePoint centre{cloud.x[s.seed], cloud.y[s.seed], cloud.z[s.seed], s.splat.label,     a.intensity, 0,
                         a.sensor_dx,     a.sensor_dy,     a.sensor_dz,     TilePoint::kNoSlot};
        move(centre, s.splat.x, s.splat.y, s.splat.z);
        centres_.push_back({centre, s.normal, s.splat.group, s.oriented, s.fitted_radius, s.least_radius});
    }
    make_unique(centres_);
}

void SplatCentres::make_unique(std::vector<Centre>& centres) {
    const auto all_of = [](const Centre& c) {
        return std::tie(c.point, c.group, c.normal.x, c.normal.y, c.normal.z, c.oriented, c.radius,
                        c.least_radius);
    };
    if (centres.empty()) return;
    // By x first, as points are ordered: digits of a number are sorted faster than centres are compared.
    const auto [first, last] =
        std::minmax_element(centres.begin(), centres.end(),
                            [](const Centre& a, const Centre& b) { return a.point.x < b.point.x; });
    const std::int64_t x_min = first->point.x, x_max = last->point.x;
    std::vector<KeyedIndex> order(centres.size());
    for (std::size_t i = 0; i < centres.size(); ++i)
        order[i] = {static_cast<std::uint64_t>(centres[i].point.x - x_min), static_cast<std::uint32_t>(i)};
    const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(x_max - x_min)));
    sort_by_key(order, bits, [&](const KeyedIndex& a, const KeyedIndex& b) {
        return all_of(centres[a.index]) < all_of(centres[b.index]);
    });
    const auto same_place = [](const TilePoint& a, const TilePoint& b) {
        return a.x == b.x && a.y == b.y && a.z == b.z;
    };
    std::vector<Centre> unique;
    unique.reserve(centres.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        constexpr std::size_t kAhead = 16;
        if (i + kAhead < order.size()) prefetch(&centres[order[i + kAhead].index]);
        const Centre& c = centres[order[i].index];
        if (unique.empty() || !same_place(unique.back().point, c.point)) unique.push_back(c);
    }
    centres = std::move(unique);
}

/// Calls visit(centre, neighbours) for each centre inside the box that has a density, in parallel. The
/// neighbours are the splats within R̄ that count, the centre itself included, unordered; of a place with more
/// than `enough` only the nearest `enough`, so that no place is worth more work than another.
template <class Visit>
void SplatCentres::visit_neighbourhoods(const LatticeBox& box, std::int32_t enough, const CancelToken& cancel,
                                        const Visit& visit) const {
    std::vector<TilePoint> points;
    std::vector<std::uint32_t> centre_of;  // by rank: positions are unique and no class is dynamic
    for (std::size_t i = 0; i < centres_.size(); ++i)
        if (centres_[i].group != SplatGroup::non_surface) {
            points.push_back(centres_[i].point);
            centre_of.push_back(static_cast<std::uint32_t>(i));
        }
    const PointCloud cloud = make_point_cloud(frame_, points, {}, ClassMap(), cancel);
    const NeighbourIndex index(cloud.x, cloud.y, cloud.z, cloud.rank);
    const Reach ball{enough, settings_.mean_radius_steps};
    const std::vector<std::uint8_t> reach_class(cloud.size(), 0);

    const LatticePoint o = frame_.origin();
    std::vector<std::uint32_t> queries;
    for (std::size_t i = 0; i < cloud.size(); ++i)
        if (box.contains(o.x + cloud.x[i], o.y + cloud.y[i]))
            queries.push_back(static_cast<std::uint32_t>(i));

    struct Worker {
        SearchScratch scratch;
        NeighbourLists lists;
        std::vector<Neighbour> neighbours;
    };
    tbb::enumerable_thread_specific<Worker> workers;
    for_each_chunk(queries.size(), 1024, cancel, [&](std::size_t begin, std::size_t end) {
        Worker& w = workers.local();
        const std::span<const std::uint32_t> batch(queries.data() + begin, end - begin);
        {
            const StageTimes::Timer timer(settings_.times, Stage::density_search);
            find_neighbours(index, {batch, reach_class, {&ball, 1}}, w.lists, w.scratch);
        }
        const StageTimes::Timer timer(settings_.times, Stage::resampling);
        for (std::size_t q = 0; q < batch.size(); ++q) {
            w.neighbours.clear();
            const Neighbours found = w.lists[q];
            for (std::size_t i = 0; i < found.size(); ++i)
                w.neighbours.push_back({found.distance2[i], centre_of[cloud.rank[found.point[i]]]});
            visit(centre_of[cloud.rank[batch[q]]], w.neighbours);
        }
    });
}

bool SplatCentres::may_join(const Centre& a, const Centre& b) const {
    const bool same_class =
        settings_.params.method == Method::descriptors ? a.group == b.group : a.point.label == b.point.label;
    double cosine = dot(vec_cast<double>(a.normal), vec_cast<double>(b.normal));
    if (!a.oriented || !b.oriented) cosine = std::fabs(cosine);
    return same_class && cosine > settings_.params.smoothness;
}

double SplatCentres::rounding_of(const TilePoint& p) const {
    const LatticePoint o = frame_.origin();
    const std::uint64_t key = rng::key(rng::key(0xde7517e, static_cast<std::uint64_t>(o.x + p.x)),
                                       static_cast<std::uint64_t>(o.y + p.y));
    return rng::uniform(key, static_cast<std::uint64_t>(o.z + p.z));
}

/// Half-way to the farthest neighbours first. A ball of radius R̄ around a splat lacks δ̄ − δ_i splats, and
/// each of the δ_i splats in it does its share: (δ̄ − δ_i) / δ_i points, rounded up or down by a hash of the
/// place. (The paper goes from splat to splat until each has enough; that depends on the order.)
void SplatCentres::add_midpoints(std::size_t centre, std::vector<Neighbour>& neighbours, double mean_density,
                                 std::vector<Centre>& out) const {
    const auto density = static_cast<double>(neighbours.size());
    if (density >= mean_density) return;
    std::sort(neighbours.begin(), neighbours.end(), [](const Neighbour& a, const Neighbour& b) {
        return std::tie(b.distance2, b.centre) < std::tie(a.distance2, a.centre);
    });
    const Centre& from = centres_[centre];
    const double share = (mean_density - density) / density;
    auto missing = static_cast<std::int64_t>(std::floor(share + rounding_of(from.point)));
    for (const Neighbour& n : neighbours) {
        if (missing == 0) break;
        const Centre& to = centres_[n.centre];
        // A point half-way that one of the two discs covers would fill no hole.
        const double reach = 2.0 * std::max(from.radius, to.radius);
        if (n.distance2 <= reach * reach || !may_join(from, to)) continue;
        Centre middle = from;
        const auto half = [](std::int32_t a, std::int32_t b) {
            return static_cast<std::int32_t>((std::int64_t{a} + b) >> 1);
        };
        move(middle.point, half(from.point.x, to.point.x), half(from.point.y, to.point.y),
             half(from.point.z, to.point.z));
        out.push_back(middle);
        --missing;
    }
}

ResampledPoints SplatCentres::resample(const LatticeBox& box, std::int64_t to_midpoint, double mean_density,
                                       const CancelToken& cancel) const {
    tbb::enumerable_thread_specific<std::vector<Centre>> added;
    // A place with δ̄ splats or more lacks none.
    const auto enough = static_cast<std::int32_t>(std::clamp(std::ceil(mean_density), 1.0, 1e9));
    visit_neighbourhoods(box.widened(to_midpoint), enough, cancel,
                         [&](std::size_t centre, std::vector<Neighbour>& neighbours) {
                             add_midpoints(centre, neighbours, mean_density, added.local());
                         });
    const LatticePoint o = frame_.origin();
    std::vector<Centre> all;
    all.reserve(centres_.size());
    const auto add_inside = [&](const std::vector<Centre>& some) {
        std::copy_if(some.begin(), some.end(), std::back_inserter(all),
                     [&](const Centre& c) { return box.contains(o.x + c.point.x, o.y + c.point.y); });
    };
    add_inside(centres_);
    for (const std::vector<Centre>& part : added) add_inside(part);
    make_unique(all);
    ResampledPoints result;
    result.points.reserve(all.size()), result.groups.reserve(all.size()), result.discs.reserve(all.size());
    for (const Centre& c : all) {
        result.points.push_back(c.point);
        result.groups.push_back(c.group);
        result.discs.push_back({c.normal, c.radius, c.least_radius, c.oriented});
    }
    return result;
}

}  // namespace citysplat::splat
