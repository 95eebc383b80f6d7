#pragma once

#include "core/hash.hpp"
#include "core/math/lattice.hpp"
#include "mesh/corner_field.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::mesh {

/// Parameters of IMLS as AdaSplats uses it for comparison (Richa et al. 2022, §2.1.1 and 6.1.1). Every field
/// changes results and is part of the tiles' key.
struct ImlsParams {
    double voxel_m = 0.07;  ///< rounded to whole lattice steps
    double sigma = 2;       ///< σ of eq. 3, in voxels
    /// Points that are not nearer than this many voxels to a corner have no say, and distances beyond it are
    /// no values.
    double truncation = 3;
    int least_points = 10;  ///< that a normal is made of

    std::int64_t voxel_steps() const { return to_lattice(voxel_m); }

    template <class Self, class Visit>
    static void for_each_field(Self& p, const Visit& visit) {
        visit("voxel_m", p.voxel_m, 0.02, 0.25);
        visit("sigma", p.sigma, 0.5, 4);
        visit("truncation", p.truncation, 1, 3);
        visit("least_points", p.least_points, 3, 1000);
    }
    /// Throws ConfigError naming the field.
    void validate() const;
    void add_to(Hasher& hasher) const;

    friend bool operator==(const ImlsParams&, const ImlsParams&) = default;
};

/// Implicit moving least squares: the value of a corner x is the mean of n·(x − p) over the points p around
/// it, weighted by e^(−|x − p|²/σ²) (eq. 2 and 3 of the paper). Weights are whole numbers of 2⁻²⁰, normals of
/// 2⁻¹⁰, and so all sums are exact.
///
/// The normal n of a point is that of the plane through the points of the voxels around its voxel (the 2³, or
/// the 4³ where these have too few points), towards the sensors by their mean sight line. All points of a
/// voxel share it; those of voxels without one, or seen from nowhere, are left out. Of more than kMostPoints
/// points in one voxel an even share counts.
class ImlsField final : public CornerField {
  public:
    static constexpr std::size_t kMostPoints = 4096;

    /// Requires valid parameters.
    explicit ImlsField(const ImlsParams& params);

    std::unique_ptr<Worker> make_worker(const VoxelPoints& points, const CancelToken& cancel) const override;
    int reach_voxels() const override;
    /// Eq. 3 for a squared distance in steps², in units of 2⁻²⁰; 0 beyond the truncation.
    std::int64_t weight(std::int64_t distance2) const;

  private:
    ImlsParams params_;
    std::int64_t farthest2_ = 0;
    std::vector<std::uint32_t> weights_;  ///< by share of farthest2_
};

}  // namespace citysplat::mesh
