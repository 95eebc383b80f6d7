#include "diff/surface_diff.hpp"

#include "core/parallel.hpp"
#include "diff/clusters.hpp"
#include "diff/epoch_voxels.hpp"
#include "diff/surface_index.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace citysplat::diff {

namespace {

using tiling::CityPoints;
using tiling::Sector;

/// Read beyond a sector: what is looked at around a voxel, and the reach of the index.
constexpr std::int64_t kMargin_m = 2;
/// Along the normal, and how far from the axis: points that may be of the same surface.
constexpr double kAlong_m = 0.5, kAcross_m = 0.2;
constexpr std::int64_t kAround = 3;  ///< voxels, for these
/// A voxel with fewer points is no surface.
constexpr std::uint32_t kFewestPoints = 2;
/// Looks that see through a voxel before it is empty, as in carving.
constexpr std::uint32_t kFewestLooks = 2;
/// Points on a surface before one says that it is there, or that it is parallel to another.
constexpr std::size_t kFewestOnSurface = 2, kFewestParallel = 6;
/// A splat farther from a voxel says nothing about its normal.
constexpr double kNormalReach_m = 0.2;
/// What a single range is off by, at least: few points may agree by chance.
constexpr double kLeastSpread_m = 0.015, kMostSpread_m = 0.05;
/// How far the other surface is looked for, in voxels.
constexpr std::int64_t kFar = 5;

enum class Verdict { seen_again, moved, empty, unknown };

struct Judged {
    Verdict verdict = Verdict::unknown;
    double area_m2 = 0, distance_m = 0, detection_m = 0;
};

/// Judges the voxels of one epoch by another.
class Judge {
  public:
    Judge(const EpochVoxels& own, const EpochVoxels& other, const SurfaceIndex& surfaces,
          double registration_m)
        : own_(own), other_(other), surfaces_(surfaces), registration_m_(registration_m) {}

    Judged operator()(const EpochVoxel& voxel) const {
        const auto nearest = surfaces_.nearest(voxel.mean);
        const Surfel* surfel = nearest && nearest->distance_m <= kNormalReach_m
                                   ? &surfaces_.surfels()[nearest->surfel]
                                   : nullptr;
        Judged judged;
        judged.area_m2 = area_of(voxel, surfel);
        judged.detection_m = registration_m_ + 1.96 * kLeastSpread_m;
        const bool other_near = has_neighbour(voxel.key);
        if (surfel)
            judge_by_normal(voxel, *surfel, judged);
        else if (other_near)
            judged.verdict = Verdict::seen_again;
        if (judged.verdict == Verdict::unknown && !other_near && voxel.solid &&
            voxel.others_passed >= kFewestLooks) {
            judged.verdict = Verdict::empty;
            judged.distance_m = distance_to_other(voxel);
        }
        return judged;
    }

  private:
    template <class Visit>
    void visit(const VoxelKey& key, std::int64_t reach, const Visit& visit_voxel) const {
        for (std::int64_t dx = -reach; dx <= reach; ++dx)
            for (std::int64_t dy = -reach; dy <= reach; ++dy)
                for (std::int64_t dz = -reach; dz <= reach; ++dz)
                    if (const EpochVoxel* found = other_.find(key.moved(dx, dy, dz))) visit_voxel(*found);
    }

    /// A column of voxels along the axis that is nearest to the normal cuts the same area wherever the
    /// surface crosses it. Voxels of the column share it by their points: a surface between two layers is in
    /// both.
    double area_of(const EpochVoxel& voxel, const Surfel* surfel) const {
        if (!surfel) return kVoxel_m * kVoxel_m / 1.5;  // the mean over all directions
        const double x = std::abs(surfel->normal.x), y = std::abs(surfel->normal.y),
                     z = std::abs(surfel->normal.z), along = std::max({x, y, z});
        const VoxelKey step{x == along, x != along && y == along, x != along && y != along};
        double points = voxel.count;
        for (const std::int64_t side : {-1, 1})
            if (const EpochVoxel* next =
                    own_.find(voxel.key.moved(side * step.x, side * step.y, side * step.z)))
                points += next->count;
        return kVoxel_m * kVoxel_m / along * voxel.count / points;
    }

    bool has_neighbour(const VoxelKey& key) const {
        bool any = false;
        visit(key, 1, [&any](const EpochVoxel&) { any = true; });
        return any;
    }

    void judge_by_normal(const EpochVoxel& voxel, const Surfel& surfel, Judged& judged) const {
        std::vector<double> along;
        visit(voxel.key, kAround, [&](const EpochVoxel& other) {
            for (const Vec3d& p : other_.points(other)) {
                const Vec3d d = p - voxel.mean;
                const double a = dot(d, surfel.normal);
                if (std::abs(a) <= kAlong_m && dot(d, d) - a * a <= kAcross_m * kAcross_m) along.push_back(a);
            }
        });
        if (along.size() < kFewestOnSurface) return;
        std::sort(along.begin(), along.end());
        const double median = along[along.size() / 2];
        std::vector<double> off(along);
        for (double& a : off) a = std::abs(a - median);
        std::sort(off.begin(), off.end());
        const double spread = std::max(kLeastSpread_m, 1.4826 * off[off.size() / 2]);
        const double error = 1.96 * std::sqrt(spread * spread / static_cast<double>(along.size()) +
                                              spread * spread / voxel.count);
        judged.detection_m = registration_m_ + error;
        const auto on_surface = std::count_if(along.begin(), along.end(),
                                              [&](double a) { return std::abs(a) <= judged.detection_m; });
        if (static_cast<std::size_t>(on_surface) >= kFewestOnSurface) {
            judged.verdict = Verdict::seen_again;
        } else if (along.size() >= kFewestParallel && spread <= kMostSpread_m && voxel.solid &&
                   surfel.group <= SplatGroup::surface) {
            judged.verdict = Verdict::moved;
            judged.distance_m = median;
        }
    }

    /// To the nearest point of the other epoch, a metre at most.
    double distance_to_other(const EpochVoxel& voxel) const {
        double nearest = 1;
        visit(voxel.key, kFar, [&](const EpochVoxel& other) {
            for (const Vec3d& p : other_.points(other)) {
                const Vec3d d = p - voxel.mean;
                nearest = std::min(nearest, std::sqrt(dot(d, d)));
            }
        });
        return nearest;
    }

    const EpochVoxels &own_, &other_;
    const SurfaceIndex& surfaces_;
    double registration_m_;
};

/// What was found in one sector.
struct SectorDiff {
    std::vector<ChangedVoxel> changed;
    SurfaceAreas areas;
};

class SurfaceComparison {
  public:
    SurfaceComparison(const tiling::ObjectStore& store, const std::array<Epoch, 2>& epochs,
                      const SurfaceDiffOptions& options, const CancelToken& cancel)
        : store_(store),
          epochs_(epochs),
          options_(options),
          cancel_(cancel),
          before_(store, epochs[0].sources, &cancel),
          after_(store, epochs[1].sources, &cancel) {}

    /// Those that the new drives have points in, and their neighbours: rays go beyond.
    std::vector<Sector> sectors() const {
        std::set<Sector> wanted;
        for (const Sector& s : after_.occupied_sectors())
            for (std::int32_t dx = -1; dx <= 1; ++dx)
                for (std::int32_t dy = -1; dy <= 1; ++dy) wanted.insert({s.x + dx, s.y + dy});
        std::set<Sector> known;
        for (const Sector& s : before_.occupied_sectors()) known.insert(s);
        for (const Sector& s : after_.occupied_sectors()) known.insert(s);
        std::vector<Sector> both;
        std::set_intersection(wanted.begin(), wanted.end(), known.begin(), known.end(),
                              std::back_inserter(both));
        return both;
    }

    SectorDiff compare(const Sector& sector) const {
        const LatticeBox box = sector.box();
        const std::int64_t margin = kMargin_m * kLatticePerMetre;
        const EpochVoxels before(before_, after_, box, margin, cancel_);
        const EpochVoxels after(after_, before_, box, margin, cancel_);
        SectorDiff diff;
        judge({before, after, index_of(0, box), SurfaceChange::gone}, box, diff);
        judge({after, before, index_of(1, box), SurfaceChange::appeared}, box, diff);
        return diff;
    }

  private:
    SurfaceIndex index_of(std::size_t epoch, const LatticeBox& box) const {
        return SurfaceIndex(
            read_surfels(store_, epochs_[epoch].tiles, box.widened(kMargin_m * kLatticePerMetre)));
    }

    /// One epoch held against the other.
    struct Side {
        const EpochVoxels &own, &other;
        const SurfaceIndex surfaces;
        SurfaceChange empty_means;  ///< what a voxel is that the other epoch saw through
    };

    void judge(const Side& side, const LatticeBox& box, SectorDiff& diff) const {
        const Judge judge(side.own, side.other, side.surfaces, options_.registration_m);
        const bool is_old = side.empty_means == SurfaceChange::gone;
        for (const EpochVoxel& voxel : side.own.voxels()) {
            // A voxel may reach over the edge of the sector: its corner decides.
            if (!box.contains(voxel.key.x * tiling::kVoxelSteps, voxel.key.y * tiling::kVoxelSteps)) continue;
            if (voxel.count < kFewestPoints || is_left_out(voxel.label)) continue;
            const Judged judged = judge(voxel);
            SurfaceAreas& areas = diff.areas;
            switch (judged.verdict) {
                case Verdict::seen_again:
                    if (is_old) areas.seen_again += judged.area_m2;
                    break;
                case Verdict::unknown:
                    (is_old ? areas.not_seen : areas.seen_first) += judged.area_m2;
                    break;
                case Verdict::empty:
                    (is_old ? areas.gone : areas.appeared) += judged.area_m2;
                    add(side.empty_means, voxel, judged, diff);
                    break;
                case Verdict::moved:
                    if (!is_old) break;  // counted where it was
                    areas.moved += judged.area_m2;
                    add(SurfaceChange::moved, voxel, judged, diff);
                    break;
            }
        }
    }

    bool is_left_out(std::uint16_t label) const {
        return std::find(options_.labels_left_out.begin(), options_.labels_left_out.end(), label) !=
               options_.labels_left_out.end();
    }

    static void add(SurfaceChange kind, const EpochVoxel& voxel, const Judged& judged, SectorDiff& diff) {
        diff.changed.push_back({.kind = kind,
                                .key = voxel.key,
                                .mean = voxel.mean,
                                .label = voxel.label,
                                .points = voxel.count,
                                .looks = voxel.others_passed,
                                .area_m2 = judged.area_m2,
                                .distance_m = judged.distance_m,
                                .detection_m = judged.detection_m});
    }

    const tiling::ObjectStore& store_;
    const std::array<Epoch, 2>& epochs_;
    const SurfaceDiffOptions& options_;
    const CancelToken& cancel_;
    CityPoints before_, after_;
};

}  // namespace

SurfaceDiff compare_surfaces(const tiling::ObjectStore& store, const std::array<Epoch, 2>& epochs,
                             const SurfaceDiffOptions& options, const CancelToken& cancel,
                             Progress& progress) {
    SurfaceDiff diff;
    if (epochs[0].sources.empty() || epochs[1].sources.empty()) return diff;
    const SurfaceComparison comparison(store, epochs, options, cancel);
    const std::vector<Sector> sectors = comparison.sectors();
    std::vector<SectorDiff> parts(sectors.size());
    {
        Progress::Stage stage(progress, "surfaces", sectors.size(), "sectors");
        parallel_tasks(sectors.size(), [&](std::size_t i) {
            cancel.check();
            parts[i] = comparison.compare(sectors[i]);
            stage.advance(1);
        });
    }
    std::vector<ChangedVoxel> changed;
    for (SectorDiff& part : parts) {
        changed.insert(changed.end(), part.changed.begin(), part.changed.end());
        diff.areas.seen_again += part.areas.seen_again, diff.areas.moved += part.areas.moved;
        diff.areas.gone += part.areas.gone, diff.areas.not_seen += part.areas.not_seen;
        diff.areas.appeared += part.areas.appeared, diff.areas.seen_first += part.areas.seen_first;
    }
    diff.clusters = find_clusters(std::move(changed), options.least_area_m2);
    return diff;
}

}  // namespace citysplat::diff
