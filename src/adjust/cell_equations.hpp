#pragma once

#include "adjust/block_solver.hpp"
#include "adjust/cells.hpp"
#include "adjust/sights.hpp"

#include <cstdint>
#include <optional>
#include <vector>

/// What flat cells say about the corrections: the slots that saw one surface saw it at one height.
namespace citysplat::adjust {

/// One round of the adjustment, coarse to fine.
struct Level {
    double cell_m;
    double robust_m;  ///< residuals of this size count half (Cauchy's weights)
};

/// How well one slot of a cell knows the height of the surface: points scatter by kPointSigma_m, and
/// surfaces, beams and clocks have errors that more points of the same slot do not lessen.
inline constexpr double kPointSigma_m = 0.03, kSlotSigma_m = 0.03;

/// A slot's height above the plane of its cell, and how it changes with the slot's correction.
struct Observation {
    std::uint32_t knot;
    double share;          ///< of the knot after it
    BlockVector gradient;  ///< of the height: by shift, by turn
    double weight;         ///< 1/m²
    double height_m;
};

/// The observations of one side of a cell; all the same height above an unknown level.
struct CellObservations {
    std::vector<Observation> slots;
};

/// Zero, one or two sides of a cell that was seen for half a second or longer, or by two drives. A side takes
/// part when at least two slots saw it and when more than half of its weight agrees
/// within twice `level.robust_m`; the others are taken for things that moved.
std::vector<CellObservations> observe(std::span<const SlotOfCell> slots, const Corrections& corrections,
                                      const Level& level);

struct EquationCounts {
    std::uint64_t cells = 0, observations = 0;
    std::uint64_t contradictory = 0;  ///< sides whose slots disagree
    std::uint64_t moved_on = 0;       ///< cells of which something was left out because it moved on
};

/// The equations of all cells: for each cell Σ w (hᵢ + gᵢ·c − h̄)² with the level h̄ eliminated. Sums in a
/// fixed order: the same bits for any number of threads. Throws ResourceError when they do not fit.
struct EquationTask {
    const PatchStore& patches;
    const Corrections& corrections;
    const Sights& sights;
    Level level;
    std::uint64_t memory_bytes;
};
EquationCounts add_cells(BlockEquations& equations, const EquationTask& task, const CancelToken& cancel);

}  // namespace citysplat::adjust
