#include "objects/splat_folder.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/output_file.hpp"
#include "tiling/store/splat_payload.hpp"

namespace citysplat::objects {

StoredSplats SplatFolder::write(const SplatTile& splats, std::uint64_t points) const {
    const tiling::TileProduct product = tiling::product_of(splats);
    tiling::PayloadInfo info;
    info.digest = product.digest;
    info.points = points;
    info.box = product.box;
    const auto preamble = tiling::payload_preamble(product, info);
    const StoredSplats stored{Hasher().bytes(preamble).bytes(splats.bytes()).finish(), splats.size(),
                              preamble.size() + splats.bytes().size(), info.box};
    create_directories_durably(folder_);
    try {
        OutputFile file(path_of(stored.name), OutputFile::Buffering::none);
        file.writer().write(preamble);
        file.writer().write(splats.bytes());
        file.commit(true);
    } catch (const BusyError&) {
        // Another thread has the same splats and writes them now. Should it fail, so does the whole run.
    }
    return stored;
}

SplatTile SplatFolder::read(const StoredSplats& stored, const std::string& what) const {
    const std::filesystem::path path = path_of(stored.name);
    if (!std::filesystem::exists(path))
        throw CorruptionError(what + ": " + path.string() + " is missing; make it again");
    return std::move(
        tiling::read_payload(File(path, File::Mode::read), stored.name, what, "make it again").splats);
}

}  // namespace citysplat::objects
