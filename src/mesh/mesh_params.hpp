#pragma once

#include "core/hash.hpp"
#include "core/math/lattice.hpp"

#include <cstdint>

namespace citysplat::mesh {

/// Parameters of the adaptive TSDF ("the paper": Roldão, de Charette and Verroust-Blondet, "3D Surface
/// Reconstruction from Voxel-based Lidar Data", 2019). Every field changes results and is part of the tiles'
/// key. The values are the paper's, but for the last three, of which it does not speak.
struct MeshParams {
    double voxel_m = 0.2;   ///< ω; rounded to whole lattice steps
    int least_points = 10;  ///< N_min
    int most_level = 5;     ///< k_max
    /// The smallest neighbourhood that qualifies is taken ("AN"). False: always that of `most_level` ("CN").
    bool adaptive = true;
    /// τ in 1/m² at voxels of 0.2 m ("GC"). A density grows with the square of what it is measured in, so
    /// that τ · (0.2 m / ω)² means the same at any ω. 0: no such condition.
    double confidence = 0.2;
    /// Distances beyond this many voxels are no values: no surface passes a cell that has one.
    double truncation = 2;
    /// Where sensors saw both sides of the plane, each side has statistics and a surface of its own: signs
    /// and fences are thinner than a voxel.
    bool two_sided = true;

    /// Points whose standard deviation across their plane is more than this many voxels are no plane (ADR
    /// 311). 0: no such condition.
    double most_thickness = 0.6;

    static constexpr double kLeastVoxel_m = 0.02, kMostVoxel_m = 1;

    std::int64_t voxel_steps() const { return to_lattice(voxel_m); }

    /// Calls visit(name, field, least, most) for every field, always in the same order.
    template <class Self, class Visit>
    static void for_each_field(Self& p, const Visit& visit) {
        visit("voxel_m", p.voxel_m, kLeastVoxel_m, kMostVoxel_m);
        visit("least_points", p.least_points, 3, 1000);
        visit("most_level", p.most_level, 1, 8);
        visit("adaptive", p.adaptive, 0, 1);
        visit("confidence", p.confidence, 0, 1000);
        visit("truncation", p.truncation, 1, 8);
        visit("two_sided", p.two_sided, 0, 1);
        visit("most_thickness", p.most_thickness, 0, 10);
    }
    /// Throws ConfigError naming the field.
    void validate() const;
    void add_to(Hasher& hasher) const;

    friend bool operator==(const MeshParams&, const MeshParams&) = default;
};

}  // namespace citysplat::mesh
