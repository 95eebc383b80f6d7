#pragma once

#include "splat/generation/growth.hpp"

namespace citysplat::splat {

/// Of two points the one with the lower number comes first. Positions are unique, so equal numbers are
/// settled by rank.
std::uint64_t priority_of(const LatticePoint& place);

/// What splats are selected from.
struct SelectionInput {
    const PointCloud& cloud;
    const NeighbourIndex& index;
    const Surface& surface;
    const CoveredEdge& edge;
    const GenerationSettings& settings;
    bool observe;
    std::span<const FirstDisc> discs;  ///< as in GenerationTask
};

/// Decides which points become splats. Priorities are a hash of the lattice position: a point becomes a splat
/// unless an accepted splat of higher priority suppresses it. Only points that are still undecided when their
/// turn comes are grown at all; points are taken in slices of falling priority so that a slice grows in
/// parallel, and each slice is then settled one by one in order. The slices change the work, not the result.
Generation select_splats(const SelectionInput& input, const CancelToken& cancel);

}  // namespace citysplat::splat
