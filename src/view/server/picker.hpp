#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"
#include "trace/resident_city.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace citysplat::view {

/// What a ray of the mouse met: the simulator's own answer, whatever level of detail is on the screen.
struct Picked {
    trace::Hit hit;  ///< does not exist() when there was nothing
    Vec3d position{0, 0, 0};
    struct Place {
        std::size_t tile = 0, index = 0;  ///< within the source, within the tile
        Splat splat{};
        Vec3d centre{0, 0, 0};
    };
    std::optional<Place> place;          ///< where the splat is kept
    std::vector<std::uint32_t> missing;  ///< damaged tiles that the ray would have crossed
};

/// Safe to use from several threads: one ray at a time.
class Picker {
  public:
    static constexpr float kFar_m = 2000;

    Picker(const TileSource& city, std::uint64_t budget_bytes);
    /// Requires a finite origin on Earth and a direction that is not zero.
    Picked pick(Vec3d origin, Vec3d direction, const CancelToken& cancel);

  private:
    std::optional<Picked::Place> find(const trace::Hit& hit, Vec3d position) const;

    const TileSource& city_;
    std::unique_ptr<trace::Tracer> tracer_;
    std::mutex mutex_;
    trace::ResidentCity resident_;
};

}  // namespace citysplat::view
