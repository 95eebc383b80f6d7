#pragma once

#include "core/math/vec_hd.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace citysplat::diff {

/// A disc in the world.
struct Surfel {
    Vec3d centre{0, 0, 0}, normal{0, 0, 1};
    double radius_m = 0;
    std::uint16_t label = 0;
    SplatGroup group = SplatGroup::ground;
};

/// The discs of a generation whose centres lie in a box.
std::vector<Surfel> read_surfels(const tiling::ObjectStore& store, std::span<const tiling::ProductRow> tiles,
                                 const LatticeBox& box);

/// Finds the surface next to a place. Safe to use from several threads.
class SurfaceIndex {
  public:
    /// Farther surfaces are not found.
    static constexpr double kReach_m = 1.0;

    explicit SurfaceIndex(std::vector<Surfel> surfels);

    struct Nearest {
        std::size_t surfel = 0;
        double distance_m = 0;  ///< from the disc
    };
    /// The disc that is nearest to a place; of several the one that the caller named first.
    std::optional<Nearest> nearest(Vec3d place) const;

    const std::vector<Surfel>& surfels() const { return surfels_; }

  private:
    struct Entry {
        std::uint64_t cell;
        std::uint32_t surfel;
        friend auto operator<=>(const Entry&, const Entry&) = default;
    };
    std::vector<Surfel> surfels_;
    std::vector<Entry> entries_;  ///< sorted: each disc in every cell that its box touches
};

}  // namespace citysplat::diff
