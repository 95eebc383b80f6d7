#pragma once

#include "core/cancel.hpp"
#include "core/hash.hpp"
#include "core/math/lattice.hpp"
#include "core/progress.hpp"
#include "model/mesh_tile.hpp"
#include "model/point.hpp"
#include "model/splat_tile.hpp"
#include "model/tile_grid.hpp"
#include "tiling/sector.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// The seam between tiling (which points, when, in how much memory) and what is made of them (ProductKind).
/// The builder knows nothing of products beyond this header; a processor knows nothing of files, tiles'
/// neighbours or threads.
namespace citysplat::tiling {

/// The points of a region in canonical order, with the truth about what was read.
struct Region {
    TileFrame frame;                ///< points are lattice steps from here
    LatticeBox core;                ///< world steps: what the caller must answer for
    LatticeBox covered;             ///< world steps: every point of the city inside this box is in `points`,
                                    ///< unless it was left out
    std::vector<TilePoint> points;  ///< sorted by operator<=>, identical duplicates collapsed
    std::uint64_t removed = 0;      ///< points of the core that were left out (carve/free_space.hpp)
};

/// Reads points of the city being built. Safe to call from several threads.
class RegionReader {
  public:
    virtual ~RegionReader() = default;
    /// All points within `halo_steps` of the core box.
    virtual Region read(const LatticeBox& core, std::int64_t halo_steps) const = 0;
    /// Upper bound of the points that read() would deliver, without reading them.
    virtual std::uint64_t count_at_most(const LatticeBox& box) const = 0;
    /// Number of points in the whole city, duplicates included: independent of tiling and order.
    virtual std::uint64_t total_points() const = 0;
    /// Smallest box around all points (world steps).
    virtual LatticeBox bounds() const = 0;
    /// The sectors that hold points, sorted, and which of a sector's cells (4 m) do. They depend on the set
    /// of points alone.
    virtual std::vector<Sector> occupied_sectors() const = 0;
    virtual std::vector<int> occupied_cells(const Sector& sector) const = 0;
};

/// City-wide means, frozen in the catalog at the first build (DESIGN: calibration). They are quotients of
/// exact integer sums, so they have the same bits whatever the tiling and order.
struct Calibration {
    double mean_radius_m = 0;  ///< R̄
    double mean_error_m = 0;   ///< Ē
    double mean_density = 0;  ///< δ̄: typical number of splats within R̄ of a splat, of the first generation
    std::uint64_t samples = 0;  ///< points the means were taken over
    /// Angle between neighbouring rays of the sensor that recorded the city; 0 unknown. Stored with the
    /// means, and like them frozen.
    double angular_step_rad = 0;
    friend bool operator==(const Calibration&, const Calibration&) = default;
};

struct TileOutput {
    /// Not certified: something within reach of the core depends on points that were not read. Read again
    /// with at least this halo. 0 when certified.
    std::int64_t wanted_halo_steps = 0;
    // Only when certified, and only what was asked for.
    SplatTile splats;
    MeshTile mesh;

    bool certified() const { return wanted_halo_steps == 0; }
};

/// Makes the product of one tile. Const and safe to call from several threads.
class TileProcessor {
  public:
    virtual ~TileProcessor() = default;

    /// What it makes, in the order of their numbers. One that makes several kinds has a processor for each,
    /// and is itself asked for what concerns the whole city alone: calibration, findings, parameters_key().
    virtual std::vector<ProductKind> kinds() const { return {ProductKind::splats}; }
    virtual const TileProcessor& of(ProductKind) const { return *this; }

    /// Measures the city-wide means. Called once per city (or on --recalibrate), before any tile.
    virtual Calibration calibrate(const RegionReader& reader, const CancelToken& cancel,
                                  Progress& progress) const = 0;
    /// What calibrate() noticed beside the means, as JSON: kept with the generation, for people and gates.
    /// Depends on the points and the parameters alone. Empty before calibrate(), or when there is nothing to
    /// say.
    virtual std::string findings() const { return {}; }
    virtual void set_calibration(const Calibration& calibration) = 0;

    /// Hash of everything but the points that determines the output: parameters, class map, calibration,
    /// algorithm version. Valid after set_calibration.
    virtual Hash128 parameters_key() const = 0;
    /// Halo that suffices for nearly all tiles.
    virtual std::int64_t initial_halo_steps() const = 0;
    /// Memory that process() needs for a region of n points, the region itself included.
    virtual std::size_t estimated_bytes(std::uint64_t points) const = 0;

    /// Takes the region, so that its points need not be in memory to the end.
    virtual TileOutput process(Region region, const CancelToken& cancel) const = 0;

    /// How far its products reach from the points. 0: what has no points in its core has no product.
    virtual std::int64_t reach_steps() const { return 0; }
};

}  // namespace citysplat::tiling
