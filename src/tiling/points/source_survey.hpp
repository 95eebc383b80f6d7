#pragma once

#include "tiling/points/open_objects.hpp"
#include "tiling/points/point_archive.hpp"
#include "tiling/sector.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace citysplat::tiling {

/// Which sources have points at a place. Each source is asked on its own: a point that two of them have
/// counts for both, and so do points that the city leaves out. Safe to use from several threads; every cell
/// that is decoded is verified.
class SourceSurvey {
  public:
    /// The generation that these sources belong to must stay pinned.
    SourceSurvey(CityPaths paths, std::vector<CitySource> sources);

    const std::vector<CitySource>& sources() const { return sources_; }
    std::vector<Sector> sectors() const;

    struct CellCount {
        std::uint32_t source;  ///< place among sources()
        int cell;
        std::uint32_t points;
    };
    /// Known from the tables of the archives, without decoding a point. Throws CorruptionError.
    std::vector<CellCount> cells(const Sector& sector) const;

    /// How many points of each source lie within a ball. Throws CorruptionError.
    std::vector<std::uint64_t> within(const LatticePoint& centre, std::int64_t radius_steps) const;

  private:
    struct Part {
        std::uint32_t source;
        SegmentRow segment;
    };

    ObjectStore store_;
    std::vector<CitySource> sources_;
    std::map<Sector, std::vector<Part>> parts_;
    mutable OpenObjects archives_;
};

}  // namespace citysplat::tiling
