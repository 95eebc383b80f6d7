#include "splat/calibration.hpp"

#include "core/rng_hd.hpp"
#include "splat/parallel.hpp"
#include "splat/plane_fit.hpp"
#include "splat/resampling.hpp"
#include "splat/tile_generation.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>

namespace citysplat::splat {
namespace {

/// Means over a city are taken over a sample, chosen by hash. Density differs by orders of magnitude between
/// places (a standstill, a far façade), so the sample must have many places and few points of each.
constexpr std::int64_t kCell_m = 2;
constexpr double kRadiusCells = 600;   ///< places read for R̄ and Ē, on average; all when there are fewer
constexpr double kRadiusPoints = 2e5;  ///< points of them that are asked
constexpr double kDensityCells = 40;   ///< places where splats are made for δ̄

using tiling::RegionReader;

struct Cell {
    std::int64_t ix, iy, size_steps;
    LatticeBox box() const {
        return {ix * size_steps, iy * size_steps, (ix + 1) * size_steps, (iy + 1) * size_steps};
    }
    /// In [0, 1).
    double place() const {
        const std::uint64_t key = rng::key(rng::key(0xca11b8a7e, static_cast<std::uint64_t>(size_steps)),
                                           static_cast<std::uint64_t>(ix));
        return rng::uniform(key, static_cast<std::uint64_t>(iy));
    }
};

/// Cells of `size_m` whose hash is below `share` and in which there may be points, in order. Whole blocks
/// without points are skipped.
std::vector<Cell> choose_cells(const RegionReader& reader, std::int64_t size_m, double share) {
    constexpr std::int64_t kBlock = 64;
    const LatticeBox b = reader.bounds();
    std::vector<Cell> cells;
    const std::int64_t size_steps = size_m * kLatticePerMetre, block_steps = kBlock * size_steps;
    for (std::int64_t by = floor_div(b.min_y, block_steps); by * block_steps < b.max_y; ++by)
        for (std::int64_t bx = floor_div(b.min_x, block_steps); bx * block_steps < b.max_x; ++bx) {
            const LatticeBox block{bx * block_steps, by * block_steps, (bx + 1) * block_steps,
                                   (by + 1) * block_steps};
            if (reader.count_at_most(block) == 0) continue;
            for (std::int64_t iy = by * kBlock; iy < (by + 1) * kBlock; ++iy)
                for (std::int64_t ix = bx * kBlock; ix < (bx + 1) * kBlock; ++ix) {
                    const Cell cell{ix, iy, size_steps};
                    if (cell.place() < share && cell.box().intersects(b) &&
                        reader.count_at_most(cell.box()) > 0)
                        cells.push_back(cell);
                }
        }
    return cells;
}

/// Keeps the cells whose hash is below `share`, and always the first of them by hash.
void keep(std::vector<Cell>& cells, double share) {
    const auto first = std::min_element(cells.begin(), cells.end(),
                                        [](const Cell& a, const Cell& b) { return a.place() < b.place(); });
    if (first != cells.end()) share = std::max(share, std::nextafter(first->place(), 1.0));
    std::erase_if(cells, [share](const Cell& cell) { return cell.place() >= share; });
}

/// A share of the points of a cell, by hash of their place, with everything within `halo` of the cell.
struct CellCloud {
    PointCloud cloud;
    std::vector<std::uint32_t> queries;
};
CellCloud read_cell(const RegionReader& reader, const Cell& cell, double share, std::int64_t halo,
                    const ClassMap& classes) {
    const tiling::Region region = reader.read(cell.box(), halo);
    CellCloud c{make_point_cloud(region.frame, region.points, {}, classes), {}};
    for (std::size_t i = 0; i < c.cloud.size(); ++i) {
        const LatticePoint p = c.cloud.world(i);
        const std::uint64_t key =
            rng::key(rng::key(0x9a3b1e, static_cast<std::uint64_t>(p.x)), static_cast<std::uint64_t>(p.y));
        if (region.core.contains(p.x, p.y) && rng::uniform(key, static_cast<std::uint64_t>(p.z)) < share)
            c.queries.push_back(static_cast<std::uint32_t>(i));
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

/// The neighbourhoods (K nearest, at most `radius_cap_m` away) of the sampled points of a cell, as
/// differences from the point in steps. The cap is 1.5 m at most: they fit 16 bits.
struct Neighbourhoods {
    struct Offset {
        std::int16_t x, y, z;
        Vec3d vector() const {
            return {static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)};
        }
    };
    std::vector<std::uint32_t> begin{0};  ///< in `offsets`, and the end of the last
    std::vector<std::uint32_t> reach2;
    std::vector<Offset> offsets;
};

/// Nothing when a neighbourhood reaches beyond what was read around the cell.
std::optional<Neighbourhoods> find_neighbourhoods(const CellCloud& c, const Reach& reach, std::int64_t halo) {
    const NeighbourIndex index(c.cloud.x, c.cloud.y, c.cloud.z, c.cloud.rank);
    const std::vector<std::uint8_t> reach_class(c.cloud.size(), 0);
    NeighbourLists lists;
    SearchScratch scratch;
    find_neighbours(index, {c.queries, reach_class, {&reach, 1}}, lists, scratch);
    Neighbourhoods result;
    for (std::size_t q = 0; q < c.queries.size(); ++q) {
        if (halo < reach.radius && std::int64_t{lists.reach2[q]} >= halo * halo) return std::nullopt;
        const Neighbours found = lists[q];
        for (std::size_t i = 0; i < found.size(); ++i)
            result.offsets.push_back({static_cast<std::int16_t>(found.x[i]),
                                      static_cast<std::int16_t>(found.y[i]),
                                      static_cast<std::int16_t>(found.z[i])});
        result.begin.push_back(static_cast<std::uint32_t>(result.offsets.size()));
    }
    result.reach2 = std::move(lists.reach2);
    return result;
}

void add_radii(const Neighbourhoods& n, Sum& sum) {
    std::uint64_t total = 0;
    for (const std::uint32_t reach2 : n.reach2) total += in_parts(std::sqrt(static_cast<double>(reach2)));
    sum.total += total;
    sum.count += n.reach2.size();
}

/// Distances of the neighbours within `radius` from the planes through them.
void add_errors(const Neighbourhoods& n, std::int32_t radius, Sum& sum) {
    std::vector<Moments> moments(n.reach2.size());
    std::vector<PlaneFit> fits(n.reach2.size());
    const double radius2 = static_cast<double>(radius) * radius;
    const auto for_each_near = [&](std::size_t q, const auto& body) {
        for (std::uint32_t i = n.begin[q]; i < n.begin[q + 1]; ++i)
            if (const Vec3d d = n.offsets[i].vector(); dot(d, d) <= radius2) body(d);
    };
    for (std::size_t q = 0; q < moments.size(); ++q) for_each_near(q, [&](Vec3d d) { moments[q].add(d); });
    fit_planes(moments, fits);
    std::uint64_t total = 0, count = 0;
    for (std::size_t q = 0; q < moments.size(); ++q) {
        for_each_near(q, [&](Vec3d d) { total += in_parts(std::fabs(dot(fits[q].normal, d))); });
        count += static_cast<std::uint64_t>(moments[q].count);
    }
    sum.total += total;
    sum.count += count;
}

/// Number of splats by density; the last stands for all above.
using DensityCounts = std::array<std::atomic<std::uint64_t>, 1024>;

/// Densities of the splats whose centre lies in the cell; reads again with a wider halo until they are
/// certain.
void add_densities(const RegionReader& reader, const Cell& cell, const ClassMap& classes,
                   const GenerationSettings& settings, const CancelToken& cancel, DensityCounts& counts) {
    const std::int64_t needed = settings.largest_shift() + std::int64_t{settings.mean_radius_steps} + 1;
    for (std::int64_t halo = initial_halo(settings) / 2 + needed;; halo += halo / 2) {
        cancel.check();
        const tiling::Region region = reader.read(cell.box(), halo);
        const FirstGeneration first = generate_first(region, classes, settings, cancel);
        if (first.decided_steps < needed) continue;
        SplatCentres(first.generation, first.cloud, settings).count_densities(cell.box(), counts, cancel);
        return;
    }
}

/// The density that half of the balls of radius R̄ around splats do not reach, where a ball with δ splats in
/// it counts once, not δ times. The paper takes the mean over splats; in a city that is the density of its
/// most crowded corner (docs/adr/0303).
double typical_density(const DensityCounts& counts) {
    double balls = 0, below = 0;
    for (std::size_t d = 1; d < counts.size(); ++d)
        balls += static_cast<double>(counts[d]) / static_cast<double>(d);
    for (std::size_t d = 1; d < counts.size(); ++d) {
        const double here = static_cast<double>(counts[d]) / static_cast<double>(d);
        if (here > 0 && below + here >= balls / 2)
            return static_cast<double>(d) - 0.5 + (balls / 2 - below) / here;
        below += here;
    }
    return 0;
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

    // Occupied area is counted coarsely: to look into a cell means to open its archives.
    constexpr std::int64_t kCoarse_m = 16;
    const double coarse = static_cast<double>(choose_cells(reader, kCoarse_m, 1).size());
    const double all_cells = coarse * (kCoarse_m * kCoarse_m / (kCell_m * kCell_m));
    const auto cap = static_cast<std::int32_t>(to_lattice(params.radius_cap_m));
    double cell_share = std::min(1.0, kRadiusCells / all_cells), point_share = 1;
    std::vector<Cell> cells;
    std::vector<Neighbourhoods> neighbourhoods;
    Sum radius;
    // A cloud crowded into few places may have none of them chosen at first.
    for (;; cell_share = std::min(1.0, 4 * cell_share)) {
        cells = choose_cells(reader, kCell_m, cell_share);
        point_share = kRadiusPoints / (cell_share * static_cast<double>(points));
        neighbourhoods.assign(cells.size(), {});
        for_each_cell("measuring neighbourhoods", cells, [&](std::size_t i) {
            std::optional<Neighbourhoods> found;
            for (std::int64_t halo = cap / 4; !found; halo *= 2)
                found = find_neighbourhoods(read_cell(reader, cells[i], point_share, halo, classes),
                                            {params.neighbours, cap}, halo);
            add_radii(*found, radius);
            neighbourhoods[i] = std::move(*found);
        });
        if (radius.count > 0 || cell_share == 1) break;
    }
    result.samples = radius.count;
    result.mean_radius_m = radius.mean() / kParts * kLatticeStep_m;

    const Reach plain = GenerationSettings(params, result).reaches[kPlainReach];
    Sum error;
    for_each_cell("measuring errors", cells,
                  [&](std::size_t i) { add_errors(neighbourhoods[i], plain.radius, error); });
    neighbourhoods.clear();
    result.mean_error_m = error.mean() / kParts * kLatticeStep_m;

    if (GenerationSettings(params, result).resamples()) {
        const GenerationSettings settings(params, result);
        keep(cells, cell_share * (kDensityCells / kRadiusCells));
        const auto counts = std::make_unique<DensityCounts>();
        for_each_cell("measuring densities", cells, [&](std::size_t i) {
            add_densities(reader, cells[i], classes, settings, cancel, *counts);
        });
        result.mean_density = typical_density(*counts);
    }
    return result;
}

}  // namespace citysplat::splat
