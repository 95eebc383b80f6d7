#pragma once

#include "adjust/correction.hpp"
#include "adjust/moments.hpp"
#include "adjust/sights.hpp"
#include "core/cancel.hpp"
#include "core/file.hpp"
#include "core/progress.hpp"
#include "io/point_file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace citysplat::adjust {

/// Clouds are opened one at a time, so that thousands of files do not need thousands of handles.
using OpenCloud = std::function<std::unique_ptr<PointFile>()>;

/// What a drive saw within one interval between knots in a cube of 25 cm: small enough to be moved as a
/// whole. All that the adjustment keeps of the points.
struct Patch {
    Vec3d mean_m;  ///< with the poses as given
    float scatter_m2[6];
    float sensor_offset_m[3];  ///< from the mean to where the trajectory was
    float points;
    float share;         ///< mean time: share of the interval that had passed
    std::uint32_t slot;  ///< interval, counted through all drives

    Moments moments() const;
    Vec3d sensor_m() const;
};
static_assert(sizeof(Patch) == 72);

/// Points that took no part, by reason.
struct PointsLeftOut {
    std::uint64_t read = 0, used = 0;
    std::uint64_t without_time = 0, outside_trajectory = 0;
    std::uint64_t too_near = 0, too_far = 0;
    std::uint64_t not_sampled = 0, invalid = 0;

    PointsLeftOut& operator+=(const PointsLeftOut& o);
};

/// Which points take part. Changes results.
struct PatchOptions {
    double least_range_m = 3;  ///< nearer points are the own vehicle's
    double most_range_m = 60;
    /// Of more points only those in a share of the places (squares of 2 m, chosen by hash) are used, so that
    /// about so many are left.
    std::uint64_t most_points = 32'000'000;
};

/// The patches of all clouds, in a temporary file that is already deleted, square by square of 16 m.
///
/// Sums over points are exact integers: the same patches for any order of points and files and any number of
/// threads. Memory while reading: `memory_bytes`, what is more goes to temporary files in sorted runs.
class PatchStore {
  public:
    struct Drive {
        const Correction& knots;
        std::span<const OpenCloud> clouds;
    };
    struct Place {
        std::filesystem::path scratch;
        std::uint64_t memory_bytes;
    };
    struct Run {
        const CancelToken& cancel;
        Progress& progress;
    };
    /// Gives each point to `sights`, too, those that make no patches included.
    PatchStore(std::span<const Drive> drives, const PatchOptions& options, const Place& place, Sights& sights,
               const Run& run);

    const PointsLeftOut& counts() const { return counts_; }
    std::size_t sectors() const { return sectors_.size(); }
    /// Upper bound of what load() gives.
    std::size_t size_of(std::size_t sector) const;
    std::uint64_t patches() const { return patches_; }
    /// The patches of a square in canonical order; of more than 300 000, those in a share of the places.
    void load(std::size_t sector, std::vector<Patch>& out) const;

  private:
    struct Sector {
        std::uint64_t begin, count;  ///< in patches
    };
    File file_;
    std::vector<Sector> sectors_;
    std::uint64_t patches_ = 0;
    PointsLeftOut counts_;
};

}  // namespace citysplat::adjust
