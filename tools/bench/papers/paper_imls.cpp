#include "bench/papers/paper_imls.hpp"

#include "bench/papers/point_set.hpp"
#include "model/splat_hd.hpp"
#include "splat/search/plane_fit.hpp"

#include <array>
#include <cmath>

namespace citysplat::bench {

namespace {

using mesh::Voxel;

Vec3d place_of(const mesh::VoxelPoint& p) {
    return {static_cast<double>(p.x), static_cast<double>(p.y), static_cast<double>(p.z)};
}

struct Sums {
    double weighted = 0, weight = 0;
    Vec3d normal{0, 0, 0};
};

class PaperImlsWorker final : public mesh::CornerField::Worker {
  public:
    PaperImlsWorker(const PaperImls::Params& params, const mesh::VoxelPoints& points,
                    const std::vector<Vec3d>& normals)
        : points_(points),
          normals_(normals),
          steps_(static_cast<double>(points.grid().steps())),
          radius_(params.radius_m * kLatticePerMetre),
          h2_(params.h_m * params.h_m * kLatticePerMetre * kLatticePerMetre) {}

    void fill(const mesh::BoxSums& sums, mesh::CornerBlock& out) override {
        std::fill(sums_.begin(), sums_.end(), Sums{});
        const mesh::VoxelGrid& grid = points_.grid();
        const Voxel& b = sums.block();
        const Vec3d origin{static_cast<double>(grid.corner(0, b.x)), static_cast<double>(grid.corner(1, b.y)),
                           static_cast<double>(grid.corner(2, b.z))};
        const int k = sums.most_level();
        sums.box({-k, -k, -k}, {mesh::kBlockCells + k, mesh::kBlockCells + k, mesh::kBlockCells + k},
                 [&](std::size_t voxel) {
                     const auto points = points_.points(voxel);
                     const auto first = static_cast<std::size_t>(points.data() - points_.points(0).data());
                     for (std::size_t i = 0; i < points.size(); ++i)
                         add(place_of(points[i]) - origin, normals_[first + i]);
                 });
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            const Sums& s = sums_[i];
            if (!(s.weight > 0) || !(dot(s.normal, s.normal) > 0)) continue;
            const double distance = s.weighted / s.weight * mesh::kDistanceUnits;
            out.corners[i].sides = 1;
            out.corners[i].side[0] = {static_cast<std::int32_t>(std::floor(distance + 0.5)),
                                      pack_normal(normalized(s.normal))};
        }
    }

  private:
    /// Of the corners of the block, those within the radius of a coordinate: the first, and one past the
    /// last.
    std::array<int, 2> corners_near(double p) const {
        return {std::max(0, static_cast<int>(std::ceil((p - radius_) / steps_))),
                std::min(mesh::kBlockCorners, static_cast<int>(std::floor((p + radius_) / steps_)) + 1)};
    }

    void add(Vec3d p, Vec3d n) {
        if (!(dot(n, n) > 0)) return;
        const auto xs = corners_near(p.x), ys = corners_near(p.y), zs = corners_near(p.z);
        for (int z = zs[0]; z < zs[1]; ++z)
            for (int y = ys[0]; y < ys[1]; ++y)
                for (int x = xs[0]; x < xs[1]; ++x) {
                    const Vec3d d = Vec3d{x * steps_, y * steps_, z * steps_} - p;
                    const double d2 = dot(d, d);
                    if (d2 > radius_ * radius_) continue;
                    const double w = std::exp(-d2 / h2_);
                    Sums& s = sums_[mesh::CornerBlock::at(x, y, z)];
                    s.weighted += w * dot(n, d), s.weight += w;
                    s.normal = s.normal + n * w;
                }
    }

    const mesh::VoxelPoints& points_;
    const std::vector<Vec3d>& normals_;
    double steps_, radius_, h2_;
    std::vector<Sums> sums_ = std::vector<Sums>(mesh::CornerBlock{}.corners.size());
};

/// Of the plane through the points around a point, towards its sensor.
Vec3d normal_at(const PointSet& set, std::span<const std::size_t> around, const mesh::VoxelPoint& point) {
    std::array<splat::Moments, 1> moments{};
    for (const std::size_t i : around) moments[0].add(set.points()[i] - place_of(point));
    std::array<splat::PlaneFit, 1> fit;
    splat::fit_planes(moments, fit);
    if (fit[0].shape != splat::PlaneFit::Shape::plane) return {0, 0, 0};
    const mesh::SightLine u = point.sight();
    const Vec3d sight{static_cast<double>(u.x), static_cast<double>(u.y), static_cast<double>(u.z)};
    return dot(fit[0].normal, sight) < 0 ? -fit[0].normal : fit[0].normal;
}

}  // namespace

PaperImls::PaperImls(const tiling::Region& region, std::int64_t voxel_steps, const Params& params)
    : params_(params),
      reach_(static_cast<int>(
          std::ceil(params.radius_m * kLatticePerMetre / static_cast<double>(voxel_steps)))) {
    const mesh::VoxelPoints voxels(mesh::VoxelGrid(region.frame, voxel_steps), region.points);
    std::vector<mesh::VoxelPoint> points;
    for (std::size_t v = 0; v < voxels.size(); ++v)
        points.insert(points.end(), voxels.points(v).begin(), voxels.points(v).end());
    std::vector<Vec3d> places;
    for (const mesh::VoxelPoint& p : points) places.push_back(place_of(p));
    const PointSet set(std::move(places));
    normals_.resize(points.size());
    for_each_chunk(points.size(), 4096, CancelToken(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            normals_[i] = normal_at(set, set.nearest(set.points()[i], params_.neighbours), points[i]);
    });
}

std::unique_ptr<mesh::CornerField::Worker> PaperImls::make_worker(const mesh::VoxelPoints& points,
                                                                  const CancelToken&) const {
    return std::make_unique<PaperImlsWorker>(params_, points, normals_);
}

}  // namespace citysplat::bench
