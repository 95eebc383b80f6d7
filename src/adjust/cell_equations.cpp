#include "adjust/cell_equations.hpp"

#include "adjust/moved_on.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::adjust {

namespace {

/// More slots than this of one cell say little more; the cost grows with their square.
constexpr std::size_t kMostSlots = 64;
/// From the first to the last slot of a drive in a cell. The front of a car that drives by sweeps through a
/// cell faster than that, and would be a wall that moves along.
constexpr double kLeastSpan_s = 0.5;
/// Heights further than so many times `robust_m` from the others are left out.
constexpr double kFarthest = 4;

/// A longer pause parts two sightings of a cell by one drive.
constexpr double kPause_s = 2;

/// The slots of a cell without those that saw what moved on.
std::vector<SlotOfCell> without_moving(std::span<const SlotOfCell> slots, const Corrections& corrections,
                                       const Sights& sights) {
    std::vector<SlotOfCell> kept;
    for (std::size_t begin = 0, end = 0; begin < slots.size(); begin = end) {
        for (end = begin + 1; end < slots.size(); ++end)
            if (slots[end].drive != slots[begin].drive ||
                slots[end].time_s - slots[end - 1].time_s > kPause_s)
                break;
        const auto sighting = slots.subspan(begin, end - begin);
        if (!moved_on(sighting, corrections, sights))
            kept.insert(kept.end(), sighting.begin(), sighting.end());
    }
    return kept;
}

double weighted_median(std::vector<std::pair<double, double>>& values) {
    std::sort(values.begin(), values.end());
    double all = 0, below = 0;
    for (const auto& [value, weight] : values) all += weight;
    for (const auto& [value, weight] : values)
        if ((below += weight) >= all / 2) return value;
    return values.back().first;
}

/// Weights the heights by how far they are from most of the others. False when the slots contradict each
/// other.
bool weigh(CellObservations& side, double robust_m) {
    std::vector<std::pair<double, double>> heights;
    for (const Observation& o : side.slots) heights.emplace_back(o.height_m, o.weight);
    const double middle = weighted_median(heights);
    double all = 0, agreeing = 0;
    for (const auto& [height, weight] : heights) {
        all += weight;
        if (std::fabs(height - middle) <= 2 * robust_m) agreeing += weight;
    }
    if (!(agreeing > all / 2)) return false;
    std::erase_if(side.slots, [&](const Observation& o) {
        return std::fabs(o.height_m - middle) > kFarthest * robust_m;
    });
    for (Observation& o : side.slots) {
        const double r = (o.height_m - middle) / robust_m;
        o.weight /= 1 + r * r;
    }
    return true;
}

/// Every n-th, so that no more than kMostSlots are left.
void thin_out(std::vector<Observation>& slots) {
    if (slots.size() <= kMostSlots) return;
    std::vector<Observation> kept;
    for (std::size_t i = 0; i < kMostSlots; ++i) kept.push_back(slots[i * slots.size() / kMostSlots]);
    slots = std::move(kept);
}

/// A cell's share of the equations: Σ w g gᵀ − v vᵀ / Σ w with v = Σ w g, by knots.
struct CellEquation {
    std::vector<Observation> slots;
    std::vector<std::uint32_t> knots;
    std::vector<BlockVector> sums;  ///< v, by knots
    double inverse_weight, mean_height_m;

    explicit CellEquation(std::vector<Observation> of_slots) : slots(std::move(of_slots)) {
        double weight = 0, weighted = 0;
        for (const Observation& o : slots) {
            weight += o.weight;
            weighted += o.weight * o.height_m;
            add(o.knot, o.weight * (1 - o.share), o.gradient);
            if (o.share > 0) add(o.knot + 1, o.weight * o.share, o.gradient);
        }
        inverse_weight = 1 / weight;
        mean_height_m = weighted / weight;
    }

    /// Slots come in ascending order: a knot is the last one, the one before it, or new.
    void add(std::uint32_t knot, double factor, const BlockVector& gradient) {
        std::size_t at = knots.size();
        while (at > 0 && knots[at - 1] > knot) --at;
        if (at == 0 || knots[at - 1] != knot) {
            knots.insert(knots.begin() + static_cast<std::ptrdiff_t>(at), knot);
            sums.insert(sums.begin() + static_cast<std::ptrdiff_t>(at), BlockVector{});
            ++at;
        }
        for (std::size_t i = 0; i < kUnknowns; ++i) sums[at - 1][i] += factor * gradient[i];
    }
};

void add_outer(Block& block, double factor, const BlockVector& a, const BlockVector& b) {
    for (std::size_t i = 0; i < kUnknowns; ++i)
        for (std::size_t j = 0; j < kUnknowns; ++j) block[kUnknowns * i + j] += factor * a[i] * b[j];
}

/// The first and the last knot of a cell.
struct KnotSpan {
    std::uint32_t first, last;
};

/// What the squares of one batch say.
struct SectorEquations {
    std::vector<CellEquation> cells;
    std::vector<KnotSpan> spans;  ///< of each cell, side by side: every task looks through all of them
    EquationCounts counts;
};

/// Adds what the cells say about the knots [begin, end): those rows only.
void add_rows(BlockEquations& equations, const SectorEquations& sector, std::uint32_t begin,
              std::uint32_t end) {
    for (std::size_t c = 0; c < sector.cells.size(); ++c) {
        if (sector.spans[c].last < begin || sector.spans[c].first >= end) continue;
        const CellEquation& cell = sector.cells[c];
        for (std::size_t k = 0; k < cell.knots.size(); ++k) {
            const std::uint32_t knot = cell.knots[k];
            if (knot < begin || knot >= end) continue;
            BlockEquations::Row& row = equations.row(knot);
            std::size_t at = 0;
            for (std::size_t j = 0; j <= k; ++j) {
                at = row.find(cell.knots[j], at);
                add_outer(row.blocks[at], -cell.inverse_weight, cell.sums[k], cell.sums[j]);
            }
        }
        for (const Observation& o : cell.slots) {
            const auto add_right = [&](BlockEquations::Row& row, double part) {
                const double factor = o.weight * part * (o.height_m - cell.mean_height_m);
                for (std::size_t i = 0; i < kUnknowns; ++i) row.right[i] -= factor * o.gradient[i];
            };
            const double first = 1 - o.share, second = o.share;
            if (o.knot >= begin && o.knot < end) {
                BlockEquations::Row& row = equations.row(o.knot);
                add_outer(row.blocks.back(), o.weight * first * first, o.gradient, o.gradient);
                add_right(row, first);
            }
            if (second > 0 && o.knot + 1 >= begin && o.knot + 1 < end) {
                BlockEquations::Row& row = equations.row(o.knot + 1);
                add_outer(row.blocks.back(), o.weight * second * second, o.gradient, o.gradient);
                add_outer(row.blocks[row.find(o.knot)], o.weight * first * second, o.gradient, o.gradient);
                add_right(row, second);
            }
        }
    }
}

SectorEquations equations_of(const EquationTask& task, std::size_t sector) {
    SectorEquations result;
    std::vector<Patch> patches;
    task.patches.load(sector, patches);
    for_each_cell(patches, task.corrections, task.level.cell_m, [&](std::span<const SlotOfCell> slots) {
        std::vector<CellObservations> sides = observe(slots, task.corrections, task.level);
        if (sides.empty()) return;
        if (const auto still = without_moving(slots, task.corrections, task.sights);
            still.size() < slots.size()) {
            ++result.counts.moved_on;
            sides = observe(still, task.corrections, task.level);
        }
        for (CellObservations& side : sides) {
            if (!weigh(side, task.level.robust_m)) {
                ++result.counts.contradictory;
                continue;
            }
            thin_out(side.slots);
            if (side.slots.size() < 2) continue;
            ++result.counts.cells;
            result.counts.observations += side.slots.size();
            result.cells.emplace_back(std::move(side.slots));
            result.spans.push_back({result.cells.back().knots.front(), result.cells.back().knots.back()});
        }
    });
    return result;
}

}  // namespace

std::vector<CellObservations> observe(std::span<const SlotOfCell> slots, const Corrections& corrections,
                                      const Level& level) {
    if (slots.size() < 2) return {};
    // Slots of a drive ascend in time; one drive's come after another's.
    if (slots.front().drive == slots.back().drive &&
        slots.back().time_s - slots.front().time_s < kLeastSpan_s)
        return {};
    std::vector<PassOfCell> passes;
    passes_of(slots, passes);
    const auto plane = plane_of(passes, level.cell_m);
    if (!plane) return {};
    const Vec3d& n = plane->normal;
    const Vec3d origin = slots[0].moments.mean_m;
    std::vector<CellObservations> sides(2);
    for (const SlotOfCell& slot : slots) {
        const Vec3d from_sensor = slot.moments.mean_m - slot.sensor_m;
        const double facing = dot(from_sensor, n);
        if (facing == 0) continue;
        const Vec3d turn = cross(from_sensor, n);
        sides[facing > 0 ? 1 : 0].slots.push_back(
            {corrections.first_knot_of_slot(slot.slot),
             slot.share,
             {n.x, n.y, n.z, turn.x, turn.y, turn.z},
             1 / (kSlotSigma_m * kSlotSigma_m + kPointSigma_m * kPointSigma_m / slot.moments.points),
             dot(slot.moments.mean_m - origin, n)});
    }
    std::erase_if(sides, [](const CellObservations& side) { return side.slots.size() < 2; });
    return sides;
}

EquationCounts add_cells(BlockEquations& equations, const EquationTask& task, const CancelToken& cancel) {
    EquationCounts counts;
    const auto knots = static_cast<std::uint32_t>(equations.groups());
    const std::uint32_t rows_per_task = std::max<std::uint32_t>(1, knots / 64);
    for_each_batch(task.patches, task.memory_bytes / 4, [&](std::size_t first, std::size_t last) {
        std::vector<SectorEquations> parts(last - first);
        parallel_tasks(parts.size(), [&](std::size_t i) {
            cancel.check();
            parts[i] = equations_of(task, first + i);
        });
        parallel_tasks((knots + rows_per_task - 1) / rows_per_task, [&](std::size_t task_index) {
            const auto begin = static_cast<std::uint32_t>(task_index) * rows_per_task;
            for (const SectorEquations& part : parts) {
                cancel.check();
                add_rows(equations, part, begin, std::min(knots, begin + rows_per_task));
            }
        });
        for (const SectorEquations& part : parts) {
            counts.cells += part.counts.cells;
            counts.observations += part.counts.observations;
            counts.contradictory += part.counts.contradictory;
            counts.moved_on += part.counts.moved_on;
        }
        if (equations.bytes() > task.memory_bytes / 3)
            throw ResourceError(
                "the equations of the adjustment need more than " + format_bytes(task.memory_bytes / 3) +
                ", a third of the memory; give more --memory, or fewer unknowns with a larger "
                "--knots");
    });
    return counts;
}

}  // namespace citysplat::adjust
