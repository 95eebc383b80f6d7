#include "tiling/points/city_cloud.hpp"

#include "tiling/points/city_points.hpp"
#include "tiling/store/city_reader.hpp"

namespace citysplat::tiling {

namespace {

std::vector<CitySource> sources_of(const CityPaths& paths, std::int64_t generation) {
    Catalog catalog = Catalog::open_to_read(paths.catalog());
    return tiling::sources_of(catalog, catalog.inputs(generation));
}

/// A block is a square, usually of 16 m: a crowded sector may hold more than fits into memory several times.
class CityCloud final : public PointFile {
  public:
    CityCloud(const std::filesystem::path& city, CloudPart part, std::optional<std::int64_t> generation)
        : part_(std::move(part)),
          reader_(city, generation),
          store_(CityPaths(city)),
          points_(store_, sources_of(store_.paths(), reader_.generation().id)) {
        for (const Sector& sector : points_.occupied_sectors()) add_blocks(sector.box());
        info_.format = "points of the city " + city.string();
        info_.points = points_.total_points();
        info_.crs = reader_.crs();
        info_.has_intensity = info_.has_label = true;
    }

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return blocks_.size(); }

    void read_block(std::size_t index, PointBatch& out) const override {
        const Region region = part_.read(points_, blocks_.at(index));
        const LatticePoint origin = region.frame.origin();
        out.clear();
        out.reserve(region.points.size());
        for (const TilePoint& p : region.points) {
            out.x.push_back(to_metres(origin.x + p.x));
            out.y.push_back(to_metres(origin.y + p.y));
            out.z.push_back(to_metres(origin.z + p.z));
            out.intensity.push_back(p.intensity);
            out.label.push_back(p.label);
        }
    }

  private:
    void add_blocks(const LatticeBox& sector) {
        const std::int64_t side = part_.side_cells * kCellSteps;
        for (std::int64_t x = sector.min_x; x < sector.max_x; x += side)
            for (std::int64_t y = sector.min_y; y < sector.max_y; y += side)
                blocks_.push_back({x, y, x + side, y + side});
    }

    CloudPart part_;
    CityReader reader_;  ///< pins the generation
    ObjectStore store_;
    CityPoints points_;
    std::vector<LatticeBox> blocks_;
    PointFileInfo info_;
};

}  // namespace

std::unique_ptr<PointFile> open_city_cloud(const std::filesystem::path& city,
                                           std::optional<std::int64_t> generation) {
    const auto all = [](const CityPoints& points, const LatticeBox& square) {
        return points.read(square, 0);
    };
    return open_city_cloud(city, {all, 4}, generation);
}

std::unique_ptr<PointFile> open_city_cloud(const std::filesystem::path& city, CloudPart part,
                                           std::optional<std::int64_t> generation) {
    return std::make_unique<CityCloud>(city, std::move(part), generation);
}

}  // namespace citysplat::tiling
