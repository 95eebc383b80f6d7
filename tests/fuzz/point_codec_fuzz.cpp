#include "fuzz.hpp"
#include "tiling/points/point_codec.hpp"

using namespace citysplat;

/// The first two bytes are the number of points that the archive would claim.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::size_t count = data[0] + 256u * data[1];
    std::vector<TilePoint> points;
    const bool good = tiling::decode_points(std::as_bytes(std::span(data + 2, size - 2)), count, 0, points);
    if (good && points.size() != count) std::abort();
    return 0;
}
