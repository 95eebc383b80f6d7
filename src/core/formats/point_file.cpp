#include "core/formats/point_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/formats/las_file.hpp"
#include "core/formats/ply_file.hpp"

#include <string_view>

namespace citysplat {

std::unique_ptr<PointFile> open_point_file(const std::filesystem::path& path, const ReadOptions& options) {
    File file(path, File::Mode::read);
    std::byte start[16]{};
    const std::size_t got = file.read_some_at(0, start);
    const std::string_view head(reinterpret_cast<const char*>(start), got);
    if (got == 0) throw InputError(path.string() + ": the file is empty");
    if (head.starts_with("LASF")) return formats::open_las(std::move(file), options);
    if (head.starts_with("ply\n") || head.starts_with("ply\r"))
        return formats::open_ply(std::move(file), options);
    throw InputError(path.string() + ": not a known point file; LAS, LAZ and PLY are read");
}

}  // namespace citysplat
