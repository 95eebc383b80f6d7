#pragma once

#include "core/cancel.hpp"
#include "io/point_file.hpp"
#include "tiling/points/city_points.hpp"
#include "tiling/tile_processor.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace citysplat::tiling {

/// The points of a city without those of things that moved (free_space.hpp). What is left out depends on the
/// points of the city alone, not on the region in which it is asked for. Safe to use from several threads;
/// requires that points and token outlive it. Working memory beside the region: some 30 bytes for each of its
/// points, less than a processor needs afterwards.
class CarvedPoints final : public RegionReader {
  public:
    CarvedPoints(const CityPoints& points, const CancelToken& cancel) : points_(points), cancel_(cancel) {}

    Region read(const LatticeBox& core, std::int64_t halo_steps) const override;
    std::uint64_t count_at_most(const LatticeBox& box) const override { return points_.count_at_most(box); }
    std::uint64_t total_points() const override { return points_.total_points(); }
    LatticeBox bounds() const override { return points_.bounds(); }
    std::vector<Sector> occupied_sectors() const override { return points_.occupied_sectors(); }
    std::vector<int> occupied_cells(const Sector& sector) const override {
        return points_.occupied_cells(sector);
    }

    /// The points of a box that read() leaves out.
    Region removed(const LatticeBox& box) const;

  private:
    /// The points of the core and its halo that are dynamic, or those that are not.
    Region read_some(const LatticeBox& core, std::int64_t halo_steps, bool dynamic) const;

    const CityPoints& points_;
    const CancelToken& cancel_;
};

/// What was left out of a city that was built with carving, as a cloud.
std::unique_ptr<PointFile> open_removed_cloud(const std::filesystem::path& city,
                                              std::optional<std::int64_t> generation = {});

}  // namespace citysplat::tiling
