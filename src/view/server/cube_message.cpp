#include "view/server/cube_message.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace citysplat::view {

namespace {

static_assert(std::endian::native == std::endian::little, "columns are sent as they stand in memory");

std::uint32_t word(std::int64_t value) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
}

/// Around all discs, in units from the corner.
splat::Piece whole(const splat::LevelCube& cube) {
    splat::Piece all;
    for (const splat::Piece& piece : cube.pieces) {
        for (std::size_t axis = 0; axis < 3; ++axis) {
            all.min[axis] = all.count == 0 ? piece.min[axis] : std::min(all.min[axis], piece.min[axis]);
            all.max[axis] = all.count == 0 ? piece.max[axis] : std::max(all.max[axis], piece.max[axis]);
        }
        all.count += piece.count;
    }
    return all;
}

void append_box(std::vector<std::uint32_t>& words, const splat::Piece& piece) {
    for (const std::int32_t v : piece.min) words.push_back(word(v));
    for (const std::int32_t v : piece.max) words.push_back(word(v));
}

}  // namespace

splat::LevelCubePtr cube_of_points(PlayedScan scan) {
    splat::LevelCube cube;
    const SplatTile& points = scan.points;
    splat::Piece piece{.first = 0, .count = static_cast<std::uint32_t>(points.size())};
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Splat s = points.splat(i);
        const std::array<std::int32_t, 3> at{s.x, s.y, s.z};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            piece.min[axis] = i == 0 ? at[axis] : std::min(piece.min[axis], at[axis]);
            piece.max[axis] = i == 0 ? at[axis] : std::max(piece.max[axis], at[axis]);
        }
    }
    if (!points.empty()) cube.pieces.push_back(piece);
    cube.incomplete = scan.too_far > 0;
    cube.discs = std::move(scan.points);
    return std::make_shared<const splat::LevelCube>(std::move(cube));
}

Response cube_response(splat::LevelCubePtr cube) {
    const std::size_t used = kCubeHeaderWords + cube->pieces.size() * kPieceWords;
    const std::size_t padded = (used + 15) / 16 * 16;
    const TileFrame corner = cube->discs.empty() ? TileFrame{} : cube->discs.frame();
    std::vector<std::uint32_t> words{kCubeMagic,
                                     kCubeVersion | static_cast<std::uint32_t>(cube->id.level) << 16,
                                     static_cast<std::uint32_t>(splat::unit_shift(cube->id.level)),
                                     cube->children | (cube->incomplete ? 1u << 8 : 0u),
                                     word(corner.x_m),
                                     word(corner.y_m),
                                     word(corner.z_m),
                                     static_cast<std::uint32_t>(cube->discs.size()),
                                     static_cast<std::uint32_t>(cube->pieces.size()),
                                     static_cast<std::uint32_t>(padded)};
    append_box(words, whole(*cube));
    for (const splat::Piece& piece : cube->pieces) {
        words.insert(words.end(), {piece.first, piece.count, piece.place, 0});
        append_box(words, piece);
    }
    words.resize(padded, 0);

    Response response;
    response.headers = {{"Content-Type", "application/octet-stream"}};
    response.body.assign(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint32_t));
    response.tail = cube->discs.bytes();
    response.owner = std::move(cube);
    return response;
}

}  // namespace citysplat::view
