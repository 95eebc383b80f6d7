#pragma once

#include "core/math/vec_hd.hpp"
#include "objects/object_points.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::objects {

/// A surface as cells of a grid with sums over their points. The sums are whole numbers of lattice steps, so
/// points may be added and taken away in any order and leave no trace of it.
class SurfaceMap {
  public:
    /// A box of the object's frame, in metres, and the width of a cell in lattice steps (at most 4096).
    struct Grid {
        Vec3d min, max;
        std::int64_t cell_steps;
    };
    explicit SurfaceMap(const Grid& grid);

    /// Points outside the grid are left out.
    void add(std::span<const ObjectPoint> points) { change(points, 1); }
    /// Requires points that were added.
    void remove(std::span<const ObjectPoint> points) { change(points, -1); }

    /// The plane through the points of a cell, or of the cells around it where it holds too few.
    struct Patch {
        Vec3d centre, normal;
        Vec3d gradient;    ///< of the intensity along the plane, per metre
        double intensity;  ///< at the centre, 0 … 1
        bool flat;         ///< false: the points do not lie on a plane, nothing else is set
    };
    /// The flat patch of the occupied cell nearest to a place, among its own cell and those around it;
    /// nullptr when there is none. Valid until the map changes. Not for several threads at once.
    const Patch* nearest(Vec3d place) const;

    /// Whether the cell of the place, or one of those around it, holds a point.
    bool occupied(Vec3d place) const;

    /// Root mean square distance of points from the planes through the points of their cells: cells of at
    /// least ten points that do not lie on a line, each weighted by its points. 0 without any.
    double mean_thickness_m() const;

  private:
    struct Sums {
        std::int64_t n = 0, x = 0, y = 0, z = 0, xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0;
        std::int64_t i = 0, ix = 0, iy = 0, iz = 0;
        /// Adds the sums of a cell whose corner lies (dx, dy, dz) steps from the own one.
        void add_shifted(const Sums& s, std::int64_t dx, std::int64_t dy, std::int64_t dz);
    };
    struct Cell {
        Sums sums;
        std::int32_t at[3];
        mutable Patch patch{};
        mutable std::uint64_t patch_version = 0;
    };
    /// The mean of a cell's points: what most questions ask of it, apart from the rest so that many fit the
    /// processor's cache.
    struct Mean {
        Vec3d place;
        bool taken;  ///< the cell holds points
    };
    void change(std::span<const ObjectPoint> points, std::int64_t sign);
    Mean mean_of(const Cell& cell) const;
    bool cell_at(Vec3d place, std::int32_t (&cell)[3]) const;
    const Cell* find(std::int32_t x, std::int32_t y, std::int32_t z) const;
    Patch patch_of(const Cell& cell) const;
    Patch fit(const Cell& cell, const Sums& sums) const;
    Vec3d corner_of(const Cell& cell) const;

    std::int64_t cell_steps_;
    std::int64_t min_[3];               ///< of the grid, in cells
    std::int32_t size_[3];              ///< of the grid, in cells
    std::vector<std::uint32_t> index_;  ///< by place in the grid; 0: no cell, else its number plus one
    std::vector<Cell> cells_;
    std::vector<Mean> means_;  ///< as cells_
    std::uint64_t version_ = 1;
};

}  // namespace citysplat::objects
