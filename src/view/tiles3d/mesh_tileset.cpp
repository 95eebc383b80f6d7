#include "view/tiles3d/mesh_tileset.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::view {

namespace {

/// A square of the quadtree: level 0 is the grid of the tiles, below are their parts, and above it levels are
/// negative.
struct Square {
    int level = 0;
    std::int64_t x = 0, y = 0;

    bool holds(const TileKey& key) const {
        const int down = key.level - level;
        return down >= 0 && std::int64_t{key.ix} >> down == x && std::int64_t{key.iy} >> down == y;
    }
};

class MeshTileset {
  public:
    MeshTileset(const TileSource& city, const std::filesystem::path& directory, const CancelToken& cancel,
                Progress& progress)
        : city_(city),
          cancel_(cancel),
          directory_(directory, city.crs()),
          stage_(progress, "export", city.tiles().size(), "tiles") {}

    WrittenTileset write() {
        io::TilesetTile root{.box = kEmptyBox};
        std::vector<std::size_t> all(city_.tiles().size());
        for (std::size_t t = 0; t < all.size(); ++t) all[t] = t;
        // The level at which the city is four squares at most, those around a corner.
        Square low, high;
        for (const TileEntry& tile : city_.tiles()) {
            const std::int64_t x = tile.key.ix >> tile.key.level, y = tile.key.iy >> tile.key.level;
            low = {0, std::min(low.x, x), std::min(low.y, y)};
            high = {0, std::max(high.x, x), std::max(high.y, y)};
        }
        while (low.x < -1 || low.y < -1 || high.x > 0 || high.y > 0) {
            low = {low.level - 1, low.x >> 1, low.y >> 1};
            high = {high.level - 1, high.x >> 1, high.y >> 1};
        }
        for (std::int64_t y = -1; y <= 0; ++y)
            for (std::int64_t x = -1; x <= 0; ++x) add({low.level, x, y}, all, root);
        directory_.finish(std::move(root));
        written_.contents = directory_.contents();
        return written_;
    }

  private:
    /// Those of `tiles` in the square.
    void add(const Square& square, const std::vector<std::size_t>& tiles, io::TilesetTile& parent) {
        std::vector<std::size_t> here;
        for (const std::size_t t : tiles)
            if (square.holds(city_.tiles()[t].key)) here.push_back(t);
        if (here.empty()) return;
        io::TilesetTile tile{.box = kEmptyBox};
        if (here.size() == 1) {
            if (!take(here[0], tile)) return;
        } else {
            for (std::int64_t quadrant = 0; quadrant < 4; ++quadrant)
                add({square.level + 1, 2 * square.x + (quadrant & 1), 2 * square.y + (quadrant >> 1)}, here,
                    tile);
            if (tile.children.empty()) return;
            if (tile.children.size() == 1)
                tile = io::TilesetTile(std::move(tile.children[0]));
            else
                stand_for_children(tile);
        }
        parent.box.grow(tile.box);
        parent.children.push_back(std::move(tile));
    }

    static void stand_for_children(io::TilesetTile& tile) {
        const Vec3d size = tile.box.max - tile.box.min;
        tile.origin_m = io::origin_for(tile.box);
        tile.error_m = std::max(size.x, size.y) / 8;
        for (const io::TilesetTile& child : tile.children)
            tile.error_m = std::max(tile.error_m, 2 * child.error_m);
    }

    /// Whether the tile has triangles.
    bool take(std::size_t t, io::TilesetTile& tile) {
        cancel_.check();
        const MeshTile mesh = city_.load_mesh(t);
        stage_.advance(1);
        if (mesh.empty()) return false;
        io::GlbPart part;
        part.take(mesh);
        const TileKey& key = city_.tiles()[t].key;
        part.name = std::to_string(key.level) + "_" + std::to_string(key.ix) + "_" + std::to_string(key.iy);
        for (const Vec3f& p : part.positions) tile.box.grow(part.origin_m + vec_cast<double>(p));
        tile.origin_m = part.origin_m;
        Hasher hasher;
        hasher.number(mesh.frame().x_m).number(mesh.frame().y_m).number(mesh.frame().z_m);
        hasher.bytes(mesh.bytes());
        tile.content = directory_.write_content(part, hasher.finish());
        written_.triangles += mesh.triangle_count();
        return true;
    }

    const TileSource& city_;
    const CancelToken& cancel_;
    TilesetDirectory directory_;
    Progress::Stage stage_;
    WrittenTileset written_;
};

}  // namespace

WrittenTileset write_mesh_tileset(const TileSource& city, const std::filesystem::path& directory,
                                  const CancelToken& cancel, Progress& progress) {
    return MeshTileset(city, directory, cancel, progress).write();
}

}  // namespace citysplat::view
