#include "splat/calibration.hpp"

#include "core/rng_hd.hpp"
#include "splat/parallel.hpp"
#include "splat/plane_fit.hpp"
#include "splat/resampling.hpp"
#include "splat/tile_generation.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

namespace citysplat::splat {
namespace {

constexpr std::int64_t kCellSteps = 4 * kLatticePerMetre;
constexpr double kSampleBudget_points = 3e5;
constexpr std::uint64_t kDensityShare = 2;  ///< one cell of the sample in two measures the density

using tiling::RegionReader;

struct Cell {
    std::int64_t ix, iy;
    LatticeBox box() const {
        return {ix * kCellSteps, iy * kCellSteps, (ix + 1) * kCellSteps, (iy + 1) * kCellSteps};
    }
    std::uint64_t hash(std::uint64_t purpose) const {
        return rng::key(rng::key(rng::key(0xca11b8a7e, purpose), static_cast<std::uint64_t>(ix)),
                        static_cast<std::uint64_t>(iy));
    }
};

/// Cells with points in them whose hash is below `share`, in order. Whole blocks without points are skipped.
std::vector<Cell> choose_cells(const RegionReader& reader, double share) {
    constexpr std::int64_t kBlock = 64;
    const LatticeBox b = reader.bounds();
    std::vector<Cell> cells;
    const std::int64_t block_steps = kBlock * kCellSteps;
    for (std::int64_t by = floor_div(b.min_y, block_steps); by * block_steps < b.max_y; ++by)
        for (std::int64_t bx = floor_div(b.min_x, block_steps); bx * block_steps < b.max_x; ++bx) {
            const LatticeBox block{bx * block_steps, by * block_steps, (bx + 1) * block_steps,
                                   (by + 1) * block_steps};
            if (reader.count_at_most(block) == 0) continue;
            for (std::int64_t iy = by * kBlock; iy < (by + 1) * kBlock; ++iy)
                for (std::int64_t ix = bx * kBlock; ix < (bx + 1) * kBlock; ++ix) {
                    const Cell cell{ix, iy};
                    const double place = static_cast<double>(cell.hash(0) >> 11) * 0x1.0p-53;
                    if (place < share && cell.box().intersects(b) && reader.count_at_most(cell.box()) > 0)
                        cells.push_back(cell);
                }
        }
    return cells;
}

/// The points of a cell that answer, with everything within `halo` of them.
struct CellCloud {
    PointCloud cloud;
    std::vector<std::uint32_t> queries;
};
CellCloud read_cell(const RegionReader& reader, const Cell& cell, std::int64_t halo,
                    const ClassMap& classes) {
    const tiling::Region region = reader.read(cell.box(), halo);
    CellCloud c{make_point_cloud(region.frame, region.points, {}, classes), {}};
    for (std::size_t i = 0; i < c.cloud.size(); ++i) {
        const LatticePoint p = c.cloud.world(i);
        if (region.core.contains(p.x, p.y)) c.queries.push_back(static_cast<std::uint32_t>(i));
    }
    return c;
}

struct Sum {
    std::atomic<std::uint64_t> total{0}, count{0};
    double mean() const {
        return count == 0 ? 0.0 : static_cast<double>(total.load()) / static_cast<double>(count.load());
    }
};

/// Fractions of a step in which distances are summed.
constexpr double kParts = 64;

std::uint64_t in_parts(double steps) { return static_cast<std::uint64_t>(steps * kParts + 0.5); }

void add_radii(const CellCloud& c, const Reach& reach, Sum& sum) {
    const NeighbourIndex index(c.cloud.x, c.cloud.y, c.cloud.z, c.cloud.rank);
    const std::vector<std::uint8_t> reach_class(c.cloud.size(), 0);
    std::vector<Moments> moments(c.queries.size());
    SearchScratch scratch;
    find_moments(index, {c.queries, reach_class, {&reach, 1}}, moments, scratch);
    std::uint64_t total = 0;
    for (const Moments& m : moments) total += in_parts(std::sqrt(static_cast<double>(m.reach2)));
    sum.total += total;
    sum.count += moments.size();
}

void add_errors(const CellCloud& c, const Reach& reach, Sum& sum) {
    const NeighbourIndex index(c.cloud.x, c.cloud.y, c.cloud.z, c.cloud.rank);
    const std::vector<std::uint8_t> reach_class(c.cloud.size(), 0);
    const QueryBatch batch{c.queries, reach_class, {&reach, 1}};
    std::vector<Moments> moments(c.queries.size());
    std::vector<PlaneFit> fits(c.queries.size());
    NeighbourLists lists;
    SearchScratch scratch;
    find_moments(index, batch, moments, scratch);
    fit_planes(moments, fits);
    find_neighbours(index, batch, lists, scratch);
    std::uint64_t total = 0;
    for (std::size_t q = 0; q < c.queries.size(); ++q) {
        const std::uint32_t p = c.queries[q];
        for (std::size_t i = lists.begin[q]; i < lists.begin[q] + lists.count[q]; ++i) {
            const std::uint32_t k = lists.point[i];
            const Vec3d d{static_cast<double>(c.cloud.x[k] - c.cloud.x[p]),
                          static_cast<double>(c.cloud.y[k] - c.cloud.y[p]),
                          static_cast<double>(c.cloud.z[k] - c.cloud.z[p])};
            total += in_parts(std::fabs(dot(fits[q].normal, d)));
        }
    }
    sum.total += total;
    sum.count += lists.point.size();
}

/// Densities of the splats whose centre lies in the cell; reads again with a wider halo until they are
/// certain.
void add_densities(const RegionReader& reader, const Cell& cell, const ClassMap& classes,
                   const GenerationSettings& settings, const CancelToken& cancel, Sum& sum) {
    const std::int64_t needed = settings.largest_shift() + std::int64_t{settings.mean_radius_steps} + 1;
    for (std::int64_t halo = initial_halo(settings) / 2 + needed;; halo += halo / 2) {
        cancel.check();
        const tiling::Region region = reader.read(cell.box(), halo);
        const FirstGeneration first = generate_first(region, classes, settings, cancel);
        if (first.decided_steps < needed) continue;
        const SplatCentres centres(first.generation, first.cloud, settings);
        const auto density = centres.sum_densities(cell.box(), cancel);
        sum.total += density.density;
        sum.count += density.centres;
        return;
    }
}

}  // namespace

tiling::Calibration measure_calibration(const SplatParams& params, const ClassMap& classes,
                                        const RegionReader& reader, const CancelToken& cancel,
                                        Progress& progress) {
    tiling::Calibration result;
    const std::uint64_t points = reader.total_points();
    if (points == 0) return result;
    const auto for_each_cell = [&](const char* stage, const std::vector<Cell>& chosen, const auto& body) {
        Progress::Stage report(progress, stage, chosen.size(), "cells");
        for_each_chunk(chosen.size(), 1, cancel, [&](std::size_t i, std::size_t) {
            body(i);
            report.advance(1);
        });
    };

    const auto cap = static_cast<std::int32_t>(to_lattice(params.radius_cap_m));
    Sum radius;
    std::vector<Cell> cells;
    // A cloud crowded into few cells may have none of them chosen at first.
    for (double share = kSampleBudget_points / static_cast<double>(points); radius.count == 0; share *= 2) {
        std::vector<Cell> chosen = choose_cells(reader, share);
        std::vector<std::uint8_t> has_points(chosen.size());
        for_each_cell("measuring neighbourhoods", chosen, [&](std::size_t i) {
            const CellCloud c = read_cell(reader, chosen[i], cap, classes);
            has_points[i] = !c.queries.empty();
            add_radii(c, {params.neighbours, cap}, radius);
        });
        for (std::size_t i = 0; i < chosen.size(); ++i)
            if (has_points[i]) cells.push_back(chosen[i]);
        if (share > 1) break;
    }
    result.samples = radius.count;
    result.mean_radius_m = radius.mean() / kParts * kLatticeStep_m;

    const Reach plain = GenerationSettings(params, result).reaches[kPlainReach];
    Sum error;
    for_each_cell("measuring errors", cells, [&](std::size_t i) {
        add_errors(read_cell(reader, cells[i], plain.radius, classes), plain, error);
    });
    result.mean_error_m = error.mean() / kParts * kLatticeStep_m;

    if (GenerationSettings(params, result).resamples()) {
        std::vector<Cell> some;
        for (const Cell& cell : cells)
            if (cell.hash(1) % kDensityShare == 0) some.push_back(cell);
        if (some.empty()) some = cells;
        const GenerationSettings settings(params, result);
        Sum density;
        for_each_cell("measuring densities", some, [&](std::size_t i) {
            add_densities(reader, some[i], classes, settings, cancel, density);
        });
        result.mean_density = density.mean();
    }
    return result;
}

}  // namespace citysplat::splat
