#include "io/write/gltf/tileset.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace {

using nlohmann::json;

/// Middle and half axes.
json box_of(const Box3d& b, Vec3d origin) {
    const Vec3d middle = 0.5 * (b.min + b.max) - origin, half = 0.5 * (b.max - b.min);
    return {middle.x, middle.y, middle.z, half.x, 0, 0, 0, half.y, 0, 0, 0, half.z};
}

/// A tile whose parent's coordinates begin at `parent_m`.
json tile_of(const TilesetTile& tile, Vec3d parent_m) {
    const Vec3d t = tile.origin_m - parent_m;
    json object{{"boundingVolume", {{"box", box_of(tile.box, tile.origin_m)}}},
                {"geometricError", tile.error_m},
                {"refine", "REPLACE"}};
    if (t.x != 0 || t.y != 0 || t.z != 0)
        object["transform"] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, t.x, t.y, t.z, 1};
    if (!tile.content.empty()) object["content"] = {{"uri", tile.content}};
    for (const TilesetTile& child : tile.children)
        object["children"].push_back(tile_of(child, tile.origin_m));
    return object;
}

}  // namespace

Vec3d origin_for(const Box3d& box) {
    return {std::floor(box.min.x), std::floor(box.min.y), std::floor(box.min.z)};
}

std::string tileset_text(const TilesetTile& root, const TilesetPlace& place) {
    json asset{{"version", "1.1"}, {"generator", "citysplat"}};
    asset["extras"] = {{"origin_m", {root.origin_m.x, root.origin_m.y, root.origin_m.z}}};
    if (!place.crs.empty()) asset["extras"]["crs"] = place.crs;
    json first = tile_of(root, root.origin_m);
    first["transform"] = place.transform;
    // Until the first tile is there, nothing stands for all of the city.
    const double error = std::max(length(root.box.max - root.box.min), root.error_m);
    if (root.content.empty()) first["geometricError"] = error;
    const json all{{"asset", asset}, {"geometricError", error}, {"root", first}};
    return all.dump(1, ' ', true) + "\n";
}

}  // namespace citysplat::io
