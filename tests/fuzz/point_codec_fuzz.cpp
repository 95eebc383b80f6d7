#include "fuzz.hpp"
#include "tiling/points/point_codec.hpp"

using namespace citysplat;

/// The first byte says the layout, the next two the number of points that the archive would claim.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    const auto layout = data[0] % 2 ? tiling::PointLayout::with_time : tiling::PointLayout::without_time;
    const std::size_t count = data[1] + 256u * data[2];
    std::vector<TilePoint> points;
    const bool good =
        tiling::decode_points({std::as_bytes(std::span(data + 3, size - 3)), count, 0, layout}, points);
    if (good && points.size() != count) std::abort();
    return 0;
}
