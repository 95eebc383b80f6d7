#include "io/input/kitti_sequence.hpp"

#include "core/error.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <charconv>

namespace citysplat::io {

namespace fs = std::filesystem;

bool KittiSequence::is_at(const fs::path& folder) {
    return fs::is_directory(folder / "velodyne") && fs::exists(folder / "poses.txt");
}

std::optional<fs::path> KittiSequence::folder_of(const fs::path& scan) {
    const fs::path parent = fs::absolute(scan).lexically_normal().parent_path();
    if (scan.extension() != ".bin" || parent.filename() != "velodyne" || !is_at(parent.parent_path()))
        return std::nullopt;
    return parent.parent_path();
}

KittiSequence::KittiSequence(const fs::path& folder)
    : folder_(folder),
      poses_(read_trajectory(folder / "poses.txt",
                             {.format = TrajectoryOptions::Format::kitti, .allow_gaps = true})) {}

KittiScan KittiSequence::scan(const fs::path& path) const {
    const std::string stem = path.stem().string();
    std::uint64_t number = 0;
    const auto [end, ec] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
    if (ec != std::errc() || end != stem.data() + stem.size())
        throw InputError(path.string() + ": a scan of a KITTI sequence is named by its number");
    if (number >= poses_.poses().size())
        throw InputError(path.string() + ": scan " + std::to_string(number) + ", but poses.txt has only " +
                         std::to_string(poses_.poses().size()) + " poses");
    const fs::path labels = folder_ / "labels" / (stem + ".label");
    return {poses_.poses()[static_cast<std::size_t>(number)], fs::exists(labels) ? labels : fs::path()};
}

std::vector<fs::path> KittiSequence::scans() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder_ / "velodyne"))
        if (entry.path().extension() == ".bin") paths.push_back(entry.path());
    return paths;
}

}  // namespace citysplat::io
