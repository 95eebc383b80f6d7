#include "view/tiles3d/tileset_directory.hpp"

#include "core/file.hpp"
#include "io/write/gltf/glb_writer.hpp"

#include <cmath>
#include <utility>

namespace citysplat::view {

namespace {

std::filesystem::path made(std::filesystem::path directory) {
    create_directories_durably(directory / "content");
    return directory;
}

}  // namespace

TilesetDirectory::TilesetDirectory(std::filesystem::path directory, std::string crs)
    : directory_(made(std::move(directory))), crs_(std::move(crs)), tileset_(directory_ / "tileset.json") {}

std::string TilesetDirectory::write_content(const io::GlbPart& part, const Hash128& hash) {
    const std::string name = "content/" + part.name + "-" + hash.hex().substr(0, 16) + ".glb";
    OutputFile out(directory_ / name);
    io::GlbWriter writer(out.writer(), {.origin_m = part.origin_m, .crs = crs_}, 1);
    writer.add(part);
    writer.finish();
    out.commit(true);
    ++contents_;
    return name;
}

void TilesetDirectory::finish(io::TilesetTile root) {
    if (root.children.size() == 1) root = io::TilesetTile(std::move(root.children[0]));
    if (root.box.empty()) root.box = {};
    if (root.content.empty()) root.origin_m = io::origin_for(root.box);
    const io::TilesetPlace place{.crs = crs_};
    tileset_.writer().text(io::tileset_text(root, place));
    tileset_.commit(true);
}

}  // namespace citysplat::view
