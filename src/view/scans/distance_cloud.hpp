#pragma once

#include "io/point_file.hpp"
#include "model/tile_source.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::view {

/// The points that `compare --distances` wrote, as tiles of 64 m whose splats have the distance in the place
/// of the intensity: so they have levels of detail as a city does, with mean distances. One pass over the
/// file finds which blocks have points of which tile; the points themselves are read when they are asked for.
/// Points 1 km above the lowest of their tile are left out. Immutable; safe to use from several threads.
class DistanceCloud final : public TileSource {
  public:
    static constexpr double kUnit_m =
        1e-4;  ///< of a splat's intensity; larger distances than 6.5 m are 6.5 m
    static constexpr double kRadius_m = 0.04;

    /// Throws InputError when the file cannot be read or was not written by `compare --distances`.
    explicit DistanceCloud(const std::filesystem::path& path);

    std::span<const TileEntry> tiles() const override { return entries_; }
    SplatTile load(std::size_t tile) const override;
    const ClassMap& classes() const override { return classes_; }

    const std::string& name() const { return name_; }
    std::uint64_t points() const { return points_; }
    double quantile_m(double share) const;

  private:
    std::string name_;
    std::unique_ptr<PointFile> file_;
    ClassMap classes_;
    std::vector<TileEntry> entries_;
    std::vector<std::vector<std::size_t>> blocks_;  ///< of each tile
    std::vector<std::uint64_t> histogram_;          ///< by intensity
    std::uint64_t points_ = 0;
};

}  // namespace citysplat::view
