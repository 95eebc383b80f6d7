#pragma once

#include "io/drive_writer.hpp"
#include "io/input/input_list.hpp"
#include "io/room_drive.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

/// Writes a RoomDrive as KITTI raw has it, and expands it as a command does.
namespace citysplat::test {

using Scans = std::vector<std::vector<TrueRay>>;

inline std::vector<TrueRay> returns_of(std::vector<TrueRay> rays) {
    std::erase_if(rays, [](const TrueRay& ray) { return ray.empty; });
    return rays;
}

/// As KITTI has them: ring by ring.
inline std::vector<TrueRay> by_ring(std::vector<TrueRay> rays) {
    std::stable_sort(rays.begin(), rays.end(),
                     [](const TrueRay& a, const TrueRay& b) { return a.beam > b.beam; });
    return rays;
}

inline Vec3d into(const Pose& frame, Vec3d world) {
    return rotate(conjugate(frame.rotation), world - frame.translation);
}

/// A drive of KITTI raw: the sensor looks forward in the middle of each turn, at first_s + k period. OXTS
/// writes every 10 ms and the record nearest to that moment is kept.
struct KittiRaw {
    RoomDrive drive{RoomDrive::Sensor{}};
    OxtsWriter oxts;
    int scans = 30;
    double first_s = 0.2523;

    double forward_s(int k) const { return first_s + k * drive.sensor().period_s; }

    Scans write(const std::filesystem::path& folder, bool oxts_stamps, bool scan_stamps) const {
        Scans truth;
        std::string records_stamps, begins, middles, ends;
        const double half = drive.sensor().period_s / 2;
        for (int k = 0; k < scans; ++k) {
            const double t = forward_s(k), record_s = std::round(t * 100) / 100;
            write_text(folder / "oxts/data" / (file_number(k) + ".txt"), oxts.line(drive, record_s));
            truth.push_back(by_ring(returns_of(drive.turn(t - half))));
            const std::string bytes = records(truth.back(), [&](const TrueRay& ray) {
                return into(drive.sensor_at(ray.time_s), ray.world);
            });
            write_text(folder / "velodyne_points/data" / (file_number(k) + ".bin"), bytes);
            records_stamps += stamp(record_s);
            begins += stamp(t - half), middles += stamp(t), ends += stamp(t + half);
        }
        if (oxts_stamps) write_text(folder / "oxts/timestamps.txt", records_stamps);
        if (scan_stamps) {
            write_text(folder / "velodyne_points/timestamps.txt", middles);
            write_text(folder / "velodyne_points/timestamps_start.txt", begins);
            write_text(folder / "velodyne_points/timestamps_end.txt", ends);
        }
        const Pose mount = inverse(RoomDrive::body_from_sensor());  // velodyne from IMU
        std::string rotation = "R:", shift = "T:";
        const Vec3d axes[]{rotate(mount.rotation, {1, 0, 0}), rotate(mount.rotation, {0, 1, 0}),
                           rotate(mount.rotation, {0, 0, 1})};
        for (const auto axis : {&Vec3d::x, &Vec3d::y, &Vec3d::z}) {
            for (const Vec3d& column : axes) rotation += " " + number(column.*axis);
            shift += " " + number(mount.translation.*axis);
        }
        write_text(folder.parent_path() / "calib_imu_to_velo.txt",
                   "calib_time: 25-May-2012 16:47:16\n" + rotation + "\n" + shift + "\n");
        return truth;
    }
    io::DriveOptions options() const {
        io::DriveOptions o;
        o.origin = {oxts.latitude_deg, oxts.longitude_deg, oxts.altitude_m};
        return o;
    }
};

inline std::vector<InputSource> expand(const std::filesystem::path& folder,
                                       const io::DriveOptions& options = {}) {
    return expand_inputs(std::vector{folder.string()}, {}, options);
}

/// What a fact of a drive says.
inline std::string fact(const io::Drive& drive, const std::string& name) {
    for (const auto& [key, text] : drive.facts)
        if (key == name) return text;
    return "";
}

}  // namespace citysplat::test
