#include "io/input/open_point_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/bag/bag_file.hpp"
#include "io/drive/drive.hpp"
#include "io/drive/sweep_file.hpp"
#include "io/input/adjusted_file.hpp"
#include "io/input/converted_file.hpp"
#include "io/las/las_file.hpp"
#include "io/points/kitti_scan.hpp"
#include "io/points/pcd_file.hpp"
#include "io/points/ply_file.hpp"
#include "io/points/text_points.hpp"

#include <algorithm>
#include <string_view>

namespace citysplat {

namespace {

std::unique_ptr<PointFile> open_by_content(File file, const ReadOptions& options) {
    using namespace io;
    std::byte start[16]{};
    const std::size_t got = file.read_some_at(0, start);
    const std::string_view head(reinterpret_cast<const char*>(start), got);
    const std::string name = file.path().string(), extension = lower_case(file.path().extension().string());
    const auto named = [&](std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), extension) != names.end();
    };
    // Nothing says what kind of file it was, but .bin have no header: they are scans without points.
    if (got == 0 && !(options.salvage && named({".bin"})))
        throw InputError(name + ": the file is empty; " +
                         (named({".bin"}) ? "--salvage takes it for a scan without points"
                                          : "it must go before the others can be read"));
    if (head.starts_with("LASF")) return open_las(std::move(file), options);
    if (head.starts_with("ply\n") || head.starts_with("ply\r") || head.starts_with("ply "))
        return open_ply(std::move(file), options);
    if (head.starts_with("# .PCD") || head.starts_with("VERSION ") || head.starts_with("FIELDS "))
        return open_pcd(std::move(file), options);
    if (head.starts_with("\x89MCAP0\r\n")) return open_bag(std::move(file), options);
    if (named({".mcap"})) throw InputError(name + ": byte 0: not an MCAP file; expected its magic");
    if (named({".las", ".laz"}))
        throw InputError(name + ": byte 0: not a LAS file; expected the signature LASF");
    if (named({".ply"}))
        throw InputError(name + ": byte 0: not a PLY file; expected \"ply\" on a line of its own");
    if (named({".pcd"})) return open_pcd(std::move(file), options);
    if (name.ends_with(".pcd.bin")) return open_nuscenes_scan(std::move(file), options);
    if (named({".bin"})) return open_kitti_scan(std::move(file), options);
    if (named({".xyz", ".txt", ".csv", ".pts", ".asc", ".xyzi"}))
        return open_text_points(std::move(file), options);
    throw InputError(
        name +
        ": not a known point file; LAS, LAZ, PLY, PCD, .bin of KITTI and nuScenes, bags (.mcap), and text "
        "(.xyz, .txt, .csv, "
        ".pts, .asc) are read");
}

}  // namespace

std::unique_ptr<PointFile> open_point_file(const std::filesystem::path& path, const ReadOptions& options) {
    ReadOptions how = options;
    if (!options.to_crs.empty()) how.units = ReadOptions::Units::as_is;
    const bool placed = options.sweep || options.world_from_sensor;
    if (const auto folder = placed ? std::nullopt : io::drive_folder_of(path)) {
        io::DriveOptions drive_options;
        drive_options.own_car = false;
        const io::Drive drive = io::read_drive(*folder, drive_options, open_scan_of_drive);
        if (const io::DriveScan* scan = drive.find(path)) {
            how.sweep = scan->sweep;
            if (how.labels.empty()) how.labels = scan->labels;
        }
    }
    auto file = open_by_content(File(path, File::Mode::read), how);
    if (how.sweep)
        file = io::in_the_world(std::move(file), how, path.string());
    else if (how.world_from_sensor)
        file = io::at_pose(std::move(file), how);
    if (!options.to_crs.empty()) file = io::in_other_crs(std::move(file), options, path.string());
    // Ranges are metres, which the coordinates may only be now.
    if (!how.sweep && !how.mask.empty()) file = io::without_masked(std::move(file), how.mask, path.string());
    return how.adjustment ? io::with_adjusted_poses(std::move(file), how, path.string()) : std::move(file);
}

std::unique_ptr<PointFile> open_scan_of_drive(const std::filesystem::path& path) {
    ReadOptions damaged_too;
    damaged_too.salvage = true;
    return open_by_content(File(path, File::Mode::read), damaged_too);
}

}  // namespace citysplat
