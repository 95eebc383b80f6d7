#pragma once

#include "adjust/block_solver.hpp"
#include "adjust/cells.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::adjust {

/// Drives that the equations tie together, directly or through others: the number of the first drive of each
/// one's group.
std::vector<std::size_t> tied_drives(const BlockEquations& equations, const Corrections& corrections);

/// Takes out of the corrections what no cloud can know: one shift and one turn of all drives of a group.
/// Their mean over the time of the knots that were seen becomes zero, so that a group stays where its
/// trajectories, on average, say it is. Knots beyond the first and last ones seen move with these.
void hold_datum(Corrections& corrections, const std::vector<std::size_t>& groups,
                const std::vector<bool>& seen);

}  // namespace citysplat::adjust
