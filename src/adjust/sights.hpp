#pragma once

#include "core/math/vec_hd.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace citysplat::adjust {

/// How far each slot of time could see: for each direction the nearest return. A place that lies well in
/// front of all returns in its direction was empty at that time. So things that move give themselves away:
/// the wall that a bus alongside seems to be is gone a second later, and the rays pass where it was.
///
/// Directions are binned by the octahedral map, which needs no trigonometry: 64 × 64 bins of some 3°. A bin
/// knows its nearest return only, so porous things (trees, fences) are never taken for empty. Nearest returns
/// do not depend on order: any number of threads may add.
class Sights {
  public:
    /// Takes bytes_for(slots).
    explicit Sights(std::size_t slots);
    static std::uint64_t bytes_for(std::size_t slots) { return slots * kBins * sizeof(std::uint16_t); }

    /// A return at `offset_m` from the sensor, in the axes of the world.
    void add(std::uint32_t slot, Vec3d offset_m);
    /// True when the slot's rays went on behind a place: no return in its direction is less than half a metre
    /// and 3 % behind it. False where the slot saw nothing at all.
    bool passes(std::uint32_t slot, Vec3d offset_m) const;

  private:
    static constexpr std::size_t kEdge = 64, kBins = kEdge * kEdge;
    static std::size_t bin_of(Vec3d offset_m);

    std::vector<std::atomic<std::uint16_t>> nearest_cm_;  ///< kNothing where no return was
};

}  // namespace citysplat::adjust
