#include "mesh/tsdf_field.hpp"

#include "core/math/math_hd.hpp"
#include "model/splat_hd.hpp"
#include "splat/search/plane_fit.hpp"

#include <cmath>
#include <limits>
#include <optional>

namespace citysplat::mesh {

namespace {

using splat::Moments;
using splat::PlaneFit;

/// Sights are taken to be from one side when their mean along the normal is at least this share of their
/// root mean square. A share of at most a sixth of the points from behind is then outvoted.
constexpr double kOneSided = 0.7;

/// ω at which MeshParams::confidence is meant.
constexpr double kConfidenceVoxel_m = 0.2;

/// More than what exact::log() and its bounds are rounded by, where it is asked.
constexpr double kLogMargin = 1e-9;

/// A corner on its way: its place, its points, and what was fitted to them.
struct Candidate {
    Voxel corner;
    VoxelSums sums;
};

/// The covariance of points in their plane, and where the origin of their sums lies in it.
struct InPlane {
    double determinant;  ///< λ1·λ2, steps⁴
    double distance2;    ///< of the origin from the mean, in standard deviations, squared
};

InPlane in_plane(const Moments& m, Vec3d normal) {
    // Any two directions of the plane do: determinant and distance are the same for all.
    const Vec3d away = std::fabs(normal.z) < 0.9 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0};
    const Vec3d a = normalized(cross(normal, away)), b = cross(normal, a);
    const double n = m.count;
    const double mean_a = dot(a, m.sum()) / n, mean_b = dot(b, m.sum()) / n;
    const double aa = m.sum_of_products(a, a) / n - mean_a * mean_a;
    const double bb = m.sum_of_products(b, b) / n - mean_b * mean_b;
    const double ab = m.sum_of_products(a, b) / n - mean_a * mean_b;
    const double determinant = aa * bb - ab * ab;
    if (!(determinant > 0)) return {0, 0};
    return {determinant,
            (bb * mean_a * mean_a - 2 * ab * mean_a * mean_b + aa * mean_b * mean_b) / determinant};
}

/// The decisions about one neighbourhood.
class Judge {
  public:
    Judge(const MeshParams& params, std::int64_t voxel_steps)
        : params_(params), voxel_steps_(static_cast<double>(voxel_steps)) {
        const double voxel = kConfidenceVoxel_m / voxel_steps_;
        least_density_ = params.confidence * voxel * voxel;
        const double most = params.most_thickness * voxel_steps_;
        most_variance_ = most > 0 ? most * most : std::numeric_limits<double>::infinity();
    }

    bool has_enough(std::int64_t count) const { return count >= params_.least_points; }

    /// A plane, and thin enough. Eq. 3: N_PDF ≥ τ, in logarithms.
    bool is_confident(const Moments& m, const PlaneFit& fit) const {
        if (fit.shape != PlaneFit::Shape::plane) return false;
        if (fit.share3 * fit.variance > most_variance_) return false;
        if (params_.confidence == 0) return true;
        const InPlane in = in_plane(m, fit.normal);
        if (!(in.determinant > 0)) return false;
        const double at_mean = least_density_ * 2 * exact::kPi * std::sqrt(in.determinant);
        if (!(at_mean < 1)) return false;
        const double exponent = -in.distance2 / 2;
        // x − 1 is never below log x, and 1 − 1/x never above: most are told without a logarithm.
        if (exponent > at_mean - 1 + kLogMargin) return true;
        if (exponent < 1 - 1 / at_mean - kLogMargin) return false;
        return exponent >= exact::log(at_mean);
    }

    /// Eq. 4, for a normal towards the sensors; nothing when the distance counts as no value.
    std::optional<Corner::Side> side(const Moments& m, Vec3d normal) const {
        const double distance = -dot(normal, m.sum()) / m.count;
        if (!(std::fabs(distance) <= params_.truncation * voxel_steps_)) return std::nullopt;
        return Corner::Side{static_cast<std::int32_t>(std::floor(distance * kDistanceUnits + 0.5)),
                            pack_normal(normal)};
    }

    enum class Seen { not_known, from_front, from_behind, from_both };
    /// From which side of the plane.
    Seen seen(const VoxelSums& sums, Vec3d normal) const {
        const double along = dot(normal, sums.sights());
        const double square = static_cast<double>(sums.of[VoxelSums::seen]) * sums.sum_of_sights2(normal);
        if (!(square > 0)) return Seen::not_known;
        if (params_.two_sided && along * along < kOneSided * kOneSided * square) return Seen::from_both;
        return along > 0 ? Seen::from_front : along < 0 ? Seen::from_behind : Seen::not_known;
    }

  private:
    const MeshParams& params_;
    double voxel_steps_, least_density_, most_variance_;
};

class TsdfWorker final : public CornerField::Worker {
  public:
    TsdfWorker(const MeshParams& params, const VoxelPoints& points, const CancelToken& cancel)
        : params_(params), points_(points), cancel_(cancel), judge_(params, points.grid().steps()) {}

    void fill(const BoxSums& sums, CornerBlock& out) override {
        open_.clear();
        for (int z = 0; z < kBlockCorners; ++z)
            for (int y = 0; y < kBlockCorners; ++y)
                for (int x = 0; x < kBlockCorners; ++x)
                    if (judge_.has_enough(sums.count({x, y, z}, params_.most_level)))
                        open_.push_back({x, y, z});
        for (int level = params_.adaptive ? 1 : params_.most_level; level <= params_.most_level; ++level)
            fill_level(sums, level, out);
    }

  private:
    /// Settles the open corners whose neighbourhood of this level qualifies; the others stay open.
    void fill_level(const BoxSums& sums, int level, CornerBlock& out) {
        candidates_.clear(), moments_.clear(), still_open_.clear();
        for (const Voxel& corner : open_) {
            if (!judge_.has_enough(sums.count(corner, level))) {
                still_open_.push_back(corner);
                continue;
            }
            candidates_.push_back({corner, sums.sums(corner, level)});
            moments_.push_back(candidates_.back().sums.moments());
        }
        fits_.resize(moments_.size());
        splat::fit_planes(moments_, fits_);
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            if (!settle(sums, level, i, out.corners[place(candidates_[i].corner)]))
                still_open_.push_back(candidates_[i].corner);
        open_.swap(still_open_);
    }

    static std::size_t place(const Voxel& c) { return CornerBlock::at(c.x, c.y, c.z); }

    bool settle(const BoxSums& sums, int level, std::size_t i, Corner& corner) {
        const PlaneFit& fit = fits_[i];
        if (!judge_.is_confident(moments_[i], fit)) return false;
        switch (judge_.seen(candidates_[i].sums, fit.normal)) {
            case Judge::Seen::not_known:
                return false;
            case Judge::Seen::from_front:
                put(judge_.side(moments_[i], fit.normal), corner);
                return true;
            case Judge::Seen::from_behind:
                put(judge_.side(moments_[i], -fit.normal), corner);
                return true;
            case Judge::Seen::from_both:
                return settle_sides(sums, candidates_[i].corner, level, fit.normal, corner);
        }
        return false;
    }

    static void put(const std::optional<Corner::Side>& side, Corner& corner) {
        if (side) corner.side[corner.sides++] = *side;
    }

    /// Each side by its own points. True when at least one qualifies.
    bool settle_sides(const BoxSums& sums, const Voxel& at, int level, Vec3d normal, Corner& corner) {
        cancel_.check();  // a voxel beside a car that stood may hold a million points
        const VoxelGrid& grid = points_.grid();
        const Voxel& block = sums.block();
        const std::int64_t ox = grid.corner(0, block.x + at.x), oy = grid.corner(1, block.y + at.y),
                           oz = grid.corner(2, block.z + at.z);
        std::array<VoxelSums, 2> sides;
        sums.visit(at, level, [&](std::size_t voxel) {
            for (const VoxelPoint& p : points_.points(voxel)) {
                const SightLine u = p.sight();
                const double along = normal.x * static_cast<double>(u.x) +
                                     normal.y * static_cast<double>(u.y) +
                                     normal.z * static_cast<double>(u.z);
                if (along != 0) sides[along < 0 ? 1 : 0].add(p.x - ox, p.y - oy, p.z - oz, u);
            }
        });
        bool any = false;
        for (const VoxelSums& side : sides) {
            if (!judge_.has_enough(side.of[VoxelSums::n])) continue;
            const std::array<Moments, 1> moments{side.moments()};
            std::array<PlaneFit, 1> fit;
            splat::fit_planes(moments, fit);
            if (!judge_.is_confident(moments[0], fit[0])) continue;
            const double along = dot(fit[0].normal, side.sights());
            if (along == 0) continue;
            put(judge_.side(moments[0], along > 0 ? fit[0].normal : -fit[0].normal), corner);
            any = true;
        }
        return any;
    }

    const MeshParams& params_;
    const VoxelPoints& points_;
    const CancelToken& cancel_;
    Judge judge_;
    std::vector<Voxel> open_, still_open_;
    std::vector<Candidate> candidates_;
    std::vector<Moments> moments_;
    std::vector<PlaneFit> fits_;
};

}  // namespace

TsdfField::TsdfField(const MeshParams& params) : params_(params) {}

std::unique_ptr<CornerField::Worker> TsdfField::make_worker(const VoxelPoints& points,
                                                            const CancelToken& cancel) const {
    return std::make_unique<TsdfWorker>(params_, points, cancel);
}

}  // namespace citysplat::mesh
