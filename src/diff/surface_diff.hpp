#pragma once

#include "core/cancel.hpp"
#include "core/math/vec_hd.hpp"
#include "core/progress.hpp"
#include "core/words.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <array>
#include <cstdint>
#include <vector>

/// Which surfaces came, went or moved between what two sets of drives saw.
///
/// The unit is a voxel of 20 cm that holds points of things that stand (what moved is carved away in each set
/// by itself). Its normal is that of the splat next to it. A voxel of the old drives is
///
///   seen again   when new points lie on the same surface: nearer along the normal than the level of
///   detection; moved        when instead new points lie on a surface parallel to it, within half a metre
///   along the normal; gone         when rays of the new drives passed through it in at least two looks
///   (free_space.hpp), no new
///                point is near, and it was solid: its own drives hit it more often than they saw through it;
///   not seen     otherwise: something stood in front of it, or nobody drove there.
///
/// A voxel of the new drives is *new* by the same rule with old and new exchanged, and *seen first* when old
/// rays say nothing about it. The level of detection is what poses may be wrong by, and 1.96 standard errors
/// of the mean distance (M3C2: Lague, Brodu and Leroux 2013, eq. 1).
namespace citysplat::diff {

enum class SurfaceChange { gone, appeared, moved };
inline constexpr Words<SurfaceChange, 3> kSurfaceChanges{{"gone", "new", "moved"}};

struct SurfaceDiffOptions {
    double registration_m = 0.05;  ///< how far one surface may be from itself because poses are not exact
    double least_area_m2 = 0.25;   ///< smaller clusters are left out
    std::vector<std::uint16_t> labels_left_out;  ///< classes that move
};

/// Voxels of one kind next to each other.
struct SurfaceCluster {
    SurfaceChange kind = SurfaceChange::gone;
    std::uint16_t label = 0;  ///< of most of its points
    double area_m2 = 0;       ///< of the surface
    double volume_m3 = 0;     ///< gone, new: below its top, down to its lowest part; moved: area × distance
    double distance_m = 0;    ///< moved: mean along the normal, towards where the sensors were; else how far
                              ///< the other surface is, a metre at most
    double significance = 0;  ///< distance over the level of detection
    double looks = 0;         ///< gone, new: mean number of looks that passed through it
    std::uint64_t voxels = 0;
    Vec3d centre{0, 0, 0}, min{0, 0, 0}, max{0, 0, 0};
};

/// Square metres of surface.
struct SurfaceAreas {
    double seen_again = 0, moved = 0, gone = 0, not_seen = 0;  ///< of what the old drives saw
    double appeared = 0, seen_first = 0;                       ///< of what the new ones saw
};

struct SurfaceDiff {
    std::vector<SurfaceCluster> clusters;  ///< largest first
    SurfaceAreas areas;                    ///< where the new drives were, and beside it
};

/// What two sets of drives saw, and the splats that were made of it.
struct Epoch {
    std::vector<tiling::CitySource> sources;
    std::vector<tiling::ProductRow> tiles;
};

/// Depends on the points and the options alone. Holds the points of one sector (64 m) of both epochs for each
/// thread.
SurfaceDiff compare_surfaces(const tiling::ObjectStore& store, const std::array<Epoch, 2>& epochs,
                             const SurfaceDiffOptions& options, const CancelToken& cancel,
                             Progress& progress);

}  // namespace citysplat::diff
