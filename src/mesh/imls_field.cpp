#include "mesh/imls_field.hpp"

#include "model/splat_hd.hpp"
#include "splat/params/field_list.hpp"
#include "splat/search/plane_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace citysplat::mesh {

namespace {

using splat::Moments;
using splat::PlaneFit;

constexpr std::int64_t kWeightUnits = 1 << 20, kNormalUnits = 1 << 10;
constexpr std::int64_t kWeightSteps = 1 << 14;
/// Neighbourhoods that a normal is made of, around the low corner of a voxel.
constexpr int kNearNormal = 1, kFarNormal = 2;

/// e^−x for 0 ≤ x ≤ 40: the reciprocal of a series of positive terms, in one fixed order.
double exp_of_minus(double x) {
    double term = 1, sum = 1;
    for (int n = 1; n < 160; ++n) term *= x / n, sum += term;
    return 1 / sum;
}

struct Sums {
    std::int64_t weighted = 0;  ///< Σ w·n·(x − p)
    std::int64_t weight = 0;
    std::array<std::int64_t, 3> normal{};  ///< Σ w·n

    void add(std::int64_t w, const std::array<std::int64_t, 3>& n, std::int64_t along) {
        weighted += w * along;
        weight += w;
        for (std::size_t a = 0; a < 3; ++a) normal[a] += w * n[a];
    }
};

class ImlsWorker final : public CornerField::Worker {
  public:
    ImlsWorker(const ImlsField& field, const ImlsParams& params, const VoxelPoints& points,
               const CancelToken& cancel)
        : field_(field),
          params_(params),
          points_(points),
          cancel_(cancel),
          steps_(points.grid().steps()),
          farthest_(static_cast<std::int64_t>(params.truncation * static_cast<double>(steps_))) {}

    void fill(const BoxSums& sums, CornerBlock& out) override {
        find_normals(sums);
        std::fill(sums_.begin(), sums_.end(), Sums{});
        for (const Plane& plane : planes_) {
            cancel_.check();
            add_voxel(sums.block(), plane);
        }
        const double most = params_.truncation * static_cast<double>(steps_);
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            const Sums& s = sums_[i];
            if (s.weight == 0) continue;
            const double distance = static_cast<double>(s.weighted) /
                                    (static_cast<double>(s.weight) * static_cast<double>(kNormalUnits));
            const Vec3d normal{static_cast<double>(s.normal[0]), static_cast<double>(s.normal[1]),
                               static_cast<double>(s.normal[2])};
            if (!(std::fabs(distance) <= most) || !(dot(normal, normal) > 0)) continue;
            out.corners[i].sides = 1;
            out.corners[i].side[0] = {static_cast<std::int32_t>(std::floor(distance * kDistanceUnits + 0.5)),
                                      pack_normal(normalized(normal))};
        }
    }

  private:
    struct Plane {
        std::size_t voxel;
        std::array<std::int64_t, 3> normal;
    };

    /// The voxels within reach of the block that have a normal.
    void find_normals(const BoxSums& sums) {
        const int reach = static_cast<int>(std::ceil(params_.truncation));
        candidates_.clear(), moments_.clear(), sights_.clear(), planes_.clear();
        const Voxel& block = sums.block();
        sums.box({-reach, -reach, -reach}, {kBlockCells + reach, kBlockCells + reach, kBlockCells + reach},
                 [&](std::size_t voxel) {
                     const Voxel& v = points_.voxel(voxel);
                     const Voxel corner{v.x - block.x, v.y - block.y, v.z - block.z};
                     const bool near = sums.count(corner, kNearNormal) >= params_.least_points;
                     if (!near && sums.count(corner, kFarNormal) < params_.least_points) return;
                     const VoxelSums around = sums.sums(corner, near ? kNearNormal : kFarNormal);
                     candidates_.push_back(voxel);
                     moments_.push_back(around.moments());
                     sights_.push_back(around.sights());
                 });
        fits_.resize(moments_.size());
        splat::fit_planes(moments_, fits_);
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            const double along = dot(fits_[i].normal, sights_[i]);
            if (fits_[i].shape != PlaneFit::Shape::plane || along == 0) continue;
            const Vec3d n = along > 0 ? fits_[i].normal : -fits_[i].normal;
            const auto units = [](double c) {
                return static_cast<std::int64_t>(std::floor(c * static_cast<double>(kNormalUnits) + 0.5));
            };
            planes_.push_back({candidates_[i], {units(n.x), units(n.y), units(n.z)}});
        }
    }

    void add_voxel(const Voxel& block, const Plane& plane) {
        const VoxelGrid& grid = points_.grid();
        const std::int64_t ox = grid.corner(0, block.x), oy = grid.corner(1, block.y),
                           oz = grid.corner(2, block.z);
        const auto points = points_.points(plane.voxel);
        const std::size_t stride = (points.size() + ImlsField::kMostPoints - 1) / ImlsField::kMostPoints;
        for (std::size_t i = 0; i < points.size(); i += stride)
            add_point({points[i].x - ox, points[i].y - oy, points[i].z - oz}, plane.normal);
    }

    /// Corners of the block within reach of a coordinate.
    struct Range {
        int from, to;
    };
    Range corners_near(std::int64_t p) const {
        return {
            static_cast<int>(std::max<std::int64_t>(0, -floor_div(farthest_ - p, steps_))),
            static_cast<int>(std::min<std::int64_t>(kBlockCorners - 1, floor_div(p + farthest_, steps_)))};
    }

    void add_point(const std::array<std::int64_t, 3>& p, const std::array<std::int64_t, 3>& n) {
        const Range xs = corners_near(p[0]), ys = corners_near(p[1]), zs = corners_near(p[2]);
        const std::int64_t most2 = farthest_ * farthest_;
        for (int z = zs.from; z <= zs.to; ++z) {
            const std::int64_t dz = z * steps_ - p[2];
            for (int y = ys.from; y <= ys.to; ++y) {
                const std::int64_t dy = y * steps_ - p[1], dyz2 = dy * dy + dz * dz;
                if (dyz2 >= most2) continue;
                const std::int64_t along_yz = n[1] * dy + n[2] * dz;
                Sums* const row = sums_.data() + CornerBlock::at(0, y, z);
                for (int x = xs.from; x <= xs.to; ++x) {
                    const std::int64_t dx = x * steps_ - p[0], d2 = dx * dx + dyz2;
                    if (d2 >= most2) continue;
                    row[x].add(field_.weight(d2), n, n[0] * dx + along_yz);
                }
            }
        }
    }

    const ImlsField& field_;
    const ImlsParams& params_;
    const VoxelPoints& points_;
    const CancelToken& cancel_;
    std::int64_t steps_, farthest_;
    std::vector<Sums> sums_ =
        std::vector<Sums>(static_cast<std::size_t>(kBlockCorners * kBlockCorners * kBlockCorners));
    std::vector<std::size_t> candidates_;
    std::vector<Moments> moments_;
    std::vector<Vec3d> sights_;
    std::vector<PlaneFit> fits_;
    std::vector<Plane> planes_;
};

}  // namespace

void ImlsParams::validate() const { splat::check_fields(*this, "IMLS"); }
void ImlsParams::add_to(Hasher& hasher) const { splat::hash_fields(*this, hasher); }

ImlsField::ImlsField(const ImlsParams& params) : params_(params) {
    const auto steps = static_cast<double>(params.voxel_steps());
    const auto farthest = static_cast<std::int64_t>(params.truncation * steps);
    farthest2_ = farthest * farthest;
    const double sigma = params.sigma * steps;
    weights_.resize(static_cast<std::size_t>(kWeightSteps) + 1);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        // In the middle of the squared distances that share the entry.
        const double d2 = (static_cast<double>(i) + 0.5) / static_cast<double>(kWeightSteps) *
                          static_cast<double>(farthest2_);
        const double w = exp_of_minus(std::min(40.0, d2 / (sigma * sigma)));
        weights_[i] = static_cast<std::uint32_t>(std::floor(w * static_cast<double>(kWeightUnits) + 0.5));
    }
}

std::int64_t ImlsField::weight(std::int64_t distance2) const {
    return distance2 > farthest2_ ? 0
                                  : weights_[static_cast<std::size_t>(distance2 * kWeightSteps / farthest2_)];
}

int ImlsField::reach_voxels() const { return static_cast<int>(std::ceil(params_.truncation)) + kFarNormal; }

std::unique_ptr<CornerField::Worker> ImlsField::make_worker(const VoxelPoints& points,
                                                            const CancelToken& cancel) const {
    return std::make_unique<ImlsWorker>(*this, params_, points, cancel);
}

}  // namespace citysplat::mesh
