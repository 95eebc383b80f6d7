#pragma once

#include "trace/ray_disc_hd.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// The order in which the rays of a batch are traced. It changes speed, never a hit.
namespace citysplat::trace {

/// Whether runs of sixteen consecutive rays point the same way, judged by every eighth of them. The
/// directions of a run extend over 0.02 to 0.1 in sensors that spin or look through a lens, over 0.04 in a
/// rosette, and over 2 in a sensor that fires in four directions in turn.
bool is_ordered(std::span<const Ray> rays);

/// Puts rays that point the same way next to each other. Used again for the next batch, it allocates nothing.
class RayOrder {
  public:
    /// The numbers of the rays in an order in which neighbours have similar directions, or nullptr when they
    /// come in such an order already. Gone with the next call.
    const std::uint32_t* arrange(std::span<const Ray> rays);

  private:
    void sort_by_direction(std::span<const Ray> rays);

    std::vector<std::uint32_t> keys_, order_, sorted_keys_, sorted_;
};

}  // namespace citysplat::trace
