#include "view/tiles3d/splat_tileset.hpp"

#include "core/error.hpp"
#include "splat/levels/level_pyramid.hpp"

#include <set>
#include <utility>

namespace citysplat::view {

namespace {

using splat::CubeId;

/// Raised when the same cube gives another file.
constexpr std::uint32_t kContentVersion = 1;

Vec3d metres_of(const LatticePoint& p) { return {to_metres(p.x), to_metres(p.y), to_metres(p.z)}; }

class SplatTileset {
  public:
    SplatTileset(const TileSource& city, const std::filesystem::path& directory, const CancelToken& cancel,
                 Progress& progress)
        : cancel_(cancel),
          directory_(directory, city.crs()),
          pyramid_(city, {}),
          stage_(progress, "export", pyramid_.progress().total, "columns of 64 m") {}

    WrittenTileset write() {
        io::TilesetTile root{.box = kEmptyBox};
        for (const CubeId& id : pyramid_.roots()) add(id, root);
        directory_.finish(std::move(root));
        written_.contents = directory_.contents();
        return written_;
    }

  private:
    void add(const CubeId& id, io::TilesetTile& parent) {
        cancel_.check();
        if (!pyramid_.may_exist(id)) return;
        const splat::LevelCubePtr cube = pyramid_.cube(id, cancel_);
        if (const auto missing = pyramid_.missing(); !missing.empty())
            throw CorruptionError(missing.begin()->second);
        if (cube->discs.empty()) return;
        io::TilesetTile tile{
            .origin_m = metres_of(id.corner()), .box = kEmptyBox, .error_m = splat::error_m(id.level)};
        tile.content = write_content(*cube, tile);
        if (id.level == 0) {
            written_.points += cube->discs.size();
            if (columns_.insert({id.x, id.y}).second) stage_.advance(1);
        } else {
            for (const CubeId& child : id.children()) add(child, tile);
        }
        parent.box.grow(tile.box);
        parent.children.push_back(std::move(tile));
    }

    /// The name of the file.
    std::string write_content(const splat::LevelCube& cube, io::TilesetTile& tile) {
        const LatticePoint corner = cube.id.corner();
        io::GlbPart part{.origin_m = tile.origin_m};
        Hasher hasher;
        hasher.number(kContentVersion);
        for (std::size_t i = 0; i < cube.discs.size(); ++i) {
            const splat::LevelDisc d = cube.disc(i);
            const Vec3d place =
                metres_of({d.centre.x - corner.x, d.centre.y - corner.y, d.centre.z - corner.z});
            tile.box.grow(tile.origin_m + place);
            part.positions.push_back(vec_cast<float>(place));
            part.normals.push_back(unpack_normal(d.normal));
            part.radius_m.push_back(static_cast<float>(to_metres(d.radius)));
            part.intensity.push_back(d.intensity);
            part.label.push_back(d.label);
            hasher.number(d.centre.x).number(d.centre.y).number(d.centre.z).number(d.normal).number(d.radius);
            hasher.number(d.intensity).number(d.label);
        }
        part.name = cube.id.name();
        return directory_.write_content(part, hasher.finish());
    }

    const CancelToken& cancel_;
    TilesetDirectory directory_;
    splat::LevelPyramid pyramid_;
    Progress::Stage stage_;
    std::set<std::pair<std::int32_t, std::int32_t>> columns_;
    WrittenTileset written_;
};

}  // namespace

WrittenTileset write_splat_tileset(const TileSource& city, const std::filesystem::path& directory,
                                   const CancelToken& cancel, Progress& progress) {
    return SplatTileset(city, directory, cancel, progress).write();
}

}  // namespace citysplat::view
