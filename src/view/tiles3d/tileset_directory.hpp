#pragma once

#include "core/hash.hpp"
#include "core/output_file.hpp"
#include "io/write/gltf/glb_part.hpp"
#include "io/write/gltf/tileset.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace citysplat::view {

/// What export reports.
struct WrittenTileset {
    std::uint64_t points = 0;     ///< the splats of the city
    std::uint64_t triangles = 0;  ///< of a mesh
    std::uint64_t contents = 0;   ///< files beside tileset.json
};

/// A directory with a tileset of 3D Tiles 1.1: `content/NAME-HASH.glb`, and `tileset.json`, which names them,
/// last. The name of a content says what is in it, so that a tileset that was there before stays whole until
/// the new one takes its place; contents that nothing names any more stay. Files of others are left alone.
class TilesetDirectory {
  public:
    /// A file in the way, or a directory that may not be written to, is known before the work begins: throws
    /// IoError.
    TilesetDirectory(std::filesystem::path directory, std::string crs);

    /// Writes a part under its name and the hash of what is in it, and returns the name of the content.
    std::string write_content(const io::GlbPart& part, const Hash128& hash);
    std::uint64_t contents() const { return contents_; }

    /// Gives the children of `root` their tileset. A root of one child is that child.
    void finish(io::TilesetTile root);

  private:
    std::filesystem::path directory_;
    std::string crs_;
    OutputFile tileset_;
    std::uint64_t contents_ = 0;
};

}  // namespace citysplat::view
