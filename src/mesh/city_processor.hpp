#pragma once

#include "tiling/tile_processor.hpp"

#include <memory>
#include <vector>

namespace citysplat::mesh {

/// Makes several kinds of products of a city, each by its own processor. Means and findings are those of the
/// splats, where the city has some.
class CityProcessor final : public tiling::TileProcessor {
  public:
    /// Requires processors of one kind each, sorted by kind, at least one.
    explicit CityProcessor(std::vector<std::unique_ptr<tiling::TileProcessor>> parts);

    std::vector<ProductKind> kinds() const override;
    const tiling::TileProcessor& of(ProductKind kind) const override;

    tiling::Calibration calibrate(const tiling::RegionReader& reader, const CancelToken& cancel,
                                  Progress& progress) const override;
    std::string findings() const override { return parts_.front()->findings(); }
    void set_calibration(const tiling::Calibration& calibration) override;
    /// That of the only part, or of all together.
    Hash128 parameters_key() const override;

    // Of a single kind only: the builder asks the parts.
    std::int64_t initial_halo_steps() const override { return parts_.front()->initial_halo_steps(); }
    std::size_t estimated_bytes(std::uint64_t points) const override {
        return parts_.front()->estimated_bytes(points);
    }
    std::int64_t reach_steps() const override { return parts_.front()->reach_steps(); }
    tiling::TileOutput process(tiling::Region region, const CancelToken& cancel) const override;

  private:
    std::vector<std::unique_ptr<tiling::TileProcessor>> parts_;
};

}  // namespace citysplat::mesh
