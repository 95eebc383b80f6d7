#include "tiling/carve/carved_points.hpp"

#include "tiling/carve/free_space.hpp"
#include "tiling/points/city_cloud.hpp"

namespace citysplat::tiling {

Region CarvedPoints::read(const LatticeBox& core, std::int64_t halo_steps) const {
    return read_some(core, halo_steps, false);
}

Region CarvedPoints::removed(const LatticeBox& box) const { return read_some(box, 0, true); }

Region CarvedPoints::read_some(const LatticeBox& core, std::int64_t halo_steps, bool dynamic) const {
    Region region = points_.read(core, halo_steps + FreeSpace::kMarginSteps);
    std::vector<bool> moved;
    {
        FreeSpace space(region, cancel_);
        points_.visit_rays(region.covered, [&](const Sector& sector, std::span<const Ray> rays) {
            space.add_rays(sector, rays);
        });
        moved = space.find_dynamic();
    }
    region.covered = core.widened(halo_steps);
    const LatticePoint origin = region.frame.origin();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < region.points.size(); ++i) {
        const TilePoint& p = region.points[i];
        const std::int64_t x = origin.x + p.x, y = origin.y + p.y;
        if (!region.covered.contains(x, y)) continue;
        if (moved[i] && core.contains(x, y)) ++region.removed;
        if (moved[i] == dynamic) region.points[kept++] = p;
    }
    region.points.resize(kept);
    return region;
}

std::unique_ptr<PointFile> open_removed_cloud(const std::filesystem::path& city,
                                              std::optional<std::int64_t> generation) {
    const auto removed = [](const CityPoints& points, const LatticeBox& square) {
        const CancelToken never;
        return CarvedPoints(points, never).removed(square);
    };
    return open_city_cloud(city, {removed, kCellsPerSide}, generation);
}

}  // namespace citysplat::tiling
