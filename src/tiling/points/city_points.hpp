#pragma once

#include "core/cancel.hpp"
#include "tiling/points/open_objects.hpp"
#include "tiling/points/point_archive.hpp"
#include "tiling/points/ray.hpp"
#include "tiling/sector.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"
#include "tiling/tile_processor.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace citysplat::tiling {

/// The sources that these inputs are, each once.
std::vector<CitySource> sources_of(Catalog& catalog, const std::vector<InputRow>& inputs);

/// A sector is quarantined when it and its eight neighbours have fewer different points than this, all
/// sources together: a return from the far end of nowhere. The rule counts on the fixed sector grid, and a
/// point that is written many times once, so that neither tile size nor the order, number or copies of files
/// can change it.
inline constexpr std::uint64_t kFewestPointsAround = 16;

/// What each sector holds, known from the rows alone. Two sets of sources with equal hashes in a sector have
/// equal points there, or have it both in quarantine: where that may depend on the neighbours, the hash does.
std::map<Sector, Hash128> content_hashes(const std::vector<CitySource>& sources);
/// The same where rays count as well: equal hashes mean that points and the rays that pass are equal.
std::map<Sector, Hash128> content_and_ray_hashes(const std::vector<CitySource>& sources);

/// The points of a set of sources, read region by region from their archives. Safe to use from several
/// threads. Every cell that is read is verified.
class CityPoints final : public RegionReader {
  public:
    /// Reads the few points of thin sectors to know which are in quarantine. Throws CorruptionError. With a
    /// token, which must outlive it, reading a region throws Interrupted once that is requested.
    CityPoints(const ObjectStore& store, std::vector<CitySource> sources,
               const CancelToken* cancel = nullptr);

    Region read(const LatticeBox& core, std::int64_t halo_steps) const override;
    std::uint64_t count_at_most(const LatticeBox& box) const override;
    std::uint64_t total_points() const override { return total_points_; }
    LatticeBox bounds() const override { return bounds_; }
    std::vector<Sector> occupied_sectors() const override { return sectors_; }
    std::vector<int> occupied_cells(const Sector& sector) const override;

    /// Calls visit(sector, rays) with all rays of witnesses (ray.hpp) that may pass the box, some thousand of
    /// a sector at a time, in steps from the sector's origin. One that several sources have may come several
    /// times; others may come along.
    using VisitRays = std::function<void(const Sector&, std::span<const Ray>)>;
    void visit_rays(const LatticeBox& box, const VisitRays& visit) const;

    const std::vector<CitySource>& sources() const { return sources_; }
    /// How many different points are in quarantine.
    std::uint64_t quarantined_points() const { return quarantined_points_; }

  private:
    /// The segment of one source in one sector.
    struct Part {
        Sector sector;
        std::uint32_t source;
        SegmentRow segment;
    };
    /// Some cells of a part. No file is held: a region may touch more archives than files can be open.
    struct PartCells {
        const Part* part;
        std::vector<CellSpan> cells;
    };

    std::span<const Part> parts_of(const Sector& sector) const;
    /// What parts_of(sector) hold, part by part. Tables that were read last are kept, some megabytes: many
    /// small files may share a sector, and each is asked again for every region that touches it.
    using Tables = std::vector<SegmentTable>;
    std::shared_ptr<const Tables> tables_of(const Sector& sector) const;
    std::string name(const Part& part) const;
    void quarantine_far_outliers();
    /// Number of different points of a sector that has some: exact below kFewestPointsAround, otherwise at
    /// least that. Reads segments only when all are smaller than that and not all are equal, and holds no
    /// more than twice that many points.
    std::uint64_t count_different(const Sector& sector) const;
    std::vector<TilePoint> read_segment(const Part& part) const;
    /// The rays of a part that was written without them.
    void visit_rays_of_points(const Part& part, const SegmentTable& table, const VisitRays& visit) const;
    /// Appends the points of a column of cells that lie in the box, in no order; false when no part has cells
    /// there.
    bool decode_column(std::span<const PartCells> parts, int column, const LatticeBox& box,
                       Region& region) const;
    /// The same in canonical order, identical points collapsed.
    void read_column(std::span<const PartCells> parts, int column, const LatticeBox& box,
                     Region& region) const;

    void check_cancel() const {
        if (cancel_) cancel_->check();
    }

    std::vector<CitySource> sources_;
    const CancelToken* cancel_;
    std::vector<Part> parts_;         ///< sorted by sector, then segment hash
    std::vector<Sector> sectors_;     ///< of the parts
    std::vector<SectorBox> reaches_;  ///< of the rays of each sector
    std::uint64_t total_points_ = 0, quarantined_points_ = 0;
    LatticeBox bounds_;
    mutable OpenObjects archives_;
    mutable std::mutex tables_mutex_;
    mutable std::map<Sector, std::shared_ptr<const Tables>> tables_;
    mutable std::size_t table_spans_ = 0;
};

}  // namespace citysplat::tiling
