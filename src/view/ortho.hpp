#pragma once

#include "core/cancel.hpp"
#include "io/write/picture.hpp"
#include "io/write/raster_frame.hpp"
#include "model/tile_source.hpp"
#include "trace/resident_city.hpp"
#include "view/render.hpp"
#include "view/shading.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

/// Pictures from straight above, for maps. Pixels lie on a grid that is anchored at 0: column c covers the
/// half-open interval [c, c + 1) · resolution of x, row r that of y. So a pixel is the same in whatever
/// picture it is, and pictures of tiles next to each other are one large picture that was cut.
namespace citysplat::view {

struct OrthoOptions {
    Shade shade = Shade::intensity;  ///< not `range`
    double resolution_m = 0.02;
    int samples = 1;  ///< per pixel and axis
    /// Which heights the colours begin and end at; nothing: from the city.
    std::optional<std::pair<double, double>> heights_m{};
    std::uint64_t budget_bytes = std::uint64_t{2} << 30;  ///< tiles resident at a time
};

/// Pixels of that grid.
struct OrthoWindow {
    std::int64_t first_column = 0, first_row = 0;  ///< south-west
    std::int64_t columns = 0, rows = 0;

    bool empty() const { return columns <= 0 || rows <= 0; }
};

struct OrthoPicture {
    Picture picture;
    std::vector<std::uint8_t> opaque;  ///< 255 where something is
    std::uint64_t seen = 0;            ///< pixels in which something is
};

class OrthoCamera {
  public:
    OrthoCamera(const TileSource& city, const trace::Tracer& tracer, const OrthoOptions& options);

    /// The pixels whose middles lie in a half-open box.
    OrthoWindow window_of(const LatticeBox& box) const;
    RasterFrame frame_of(const OrthoWindow& window) const;
    /// Requires a window that is not empty. What it takes is about 12 bytes a pixel.
    OrthoPicture take(const OrthoWindow& window, const CancelToken& cancel);

  private:
    /// Rows of a picture, top to bottom.
    struct Band {
        std::int64_t first = 0, rows = 0;
    };
    void take_band(const OrthoWindow& window, const Band& band, OrthoPicture& out, const CancelToken& cancel);

    OrthoOptions options_;
    trace::ResidentCity city_;
    double top_m_, depth_m_;
    Shader shader_;
};

}  // namespace citysplat::view
