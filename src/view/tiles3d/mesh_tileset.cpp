#include "view/tiles3d/mesh_tileset.hpp"

#include "view/tiles3d/mesh_pyramid.hpp"

#include <set>
#include <utility>

namespace citysplat::view {

namespace {

using splat::CubeId;

/// Raised when the same cube gives another file.
constexpr std::uint32_t kContentVersion = 1;

class MeshTileset {
  public:
    MeshTileset(const TileSource& city, const std::filesystem::path& directory, const CancelToken& cancel,
                Progress& progress)
        : cancel_(cancel),
          directory_(directory, city.crs()),
          pyramid_(city),
          stage_(progress, "export", pyramid_.cubes().columns(), "columns of 64 m") {}

    WrittenTileset write() {
        io::TilesetTile root{.box = kEmptyBox};
        for (const CubeId& id : pyramid_.cubes().roots()) add(id, root);
        directory_.finish(std::move(root));
        written_.contents = directory_.contents();
        return written_;
    }

  private:
    /// Adds the cube, or in its place what is below it; returns the triangles of what was added.
    std::size_t add(const CubeId& id, io::TilesetTile& parent) {
        cancel_.check();
        if (!pyramid_.cubes().may_exist(id)) return 0;
        io::TilesetTile tile{.box = kEmptyBox};
        std::size_t below = 0;
        if (id.level > 0)
            for (const CubeId& child : id.children()) below += add(child, tile);
        io::GlbPart part = pyramid_.part(id, cancel_);
        const std::size_t triangles = part.triangles.size();
        if (id.level == 0) {
            written_.triangles += triangles;
            if (columns_.insert({id.x, id.y}).second) stage_.advance(1);
            if (triangles == 0) return 0;
        } else if (triangles == 0 || 2 * triangles > below) {
            // Nothing to win: voxels as small as those of the mesh, or things smaller than a voxel.
            for (io::TilesetTile& child : tile.children) parent.children.push_back(std::move(child));
            if (below > 0) parent.box.grow(tile.box);
            return below;
        }
        tile.origin_m = part.origin_m;
        tile.error_m = splat::error_m(id.level);
        for (const Vec3f& p : part.positions) tile.box.grow(part.origin_m + vec_cast<double>(p));
        tile.content = write_content(id, part);
        parent.box.grow(tile.box);
        parent.children.push_back(std::move(tile));
        return triangles;
    }

    /// The name of the file.
    std::string write_content(const CubeId& id, io::GlbPart& part) {
        Hasher hasher;
        hasher.number(kContentVersion);
        const auto add_column = [&hasher](const auto& column) {
            hasher.bytes(std::as_bytes(std::span(column)));
        };
        add_column(part.positions), add_column(part.normals), add_column(part.intensity);
        add_column(part.label), add_column(part.triangles);
        part.name = id.name();
        return directory_.write_content(part, hasher.finish());
    }

    const CancelToken& cancel_;
    TilesetDirectory directory_;
    MeshPyramid pyramid_;
    Progress::Stage stage_;
    std::set<std::pair<std::int32_t, std::int32_t>> columns_;
    WrittenTileset written_;
};

}  // namespace

WrittenTileset write_mesh_tileset(const TileSource& city, const std::filesystem::path& directory,
                                  const CancelToken& cancel, Progress& progress) {
    return MeshTileset(city, directory, cancel, progress).write();
}

}  // namespace citysplat::view
