#include "fuzz.hpp"
#include "tiling/points/point_codec.hpp"

using namespace citysplat;

/// The first byte says the layout, or that these are rays; the next two the number that the archive would
/// claim.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    const auto bytes = std::as_bytes(std::span(data + 3, size - 3));
    const auto layout = data[0] % 2 ? tiling::PointLayout::with_time : tiling::PointLayout::without_time;
    const std::size_t count = data[1] + 256u * data[2];
    if (data[0] % 4 == 2) {
        std::vector<tiling::Ray> rays;
        if (tiling::decode_rays(bytes, count, rays) && rays.size() != count) std::abort();
        return 0;
    }
    std::vector<TilePoint> points;
    const bool good = tiling::decode_points({bytes, count, 0, layout}, points);
    if (good && points.size() != count) std::abort();
    return 0;
}
