#include "io/tracks/track_writer.hpp"

#include "core/csv_cell.hpp"
#include "core/math/math_hd.hpp"
#include "core/output_file.hpp"

#include <cstdio>

namespace citysplat {

void write_tracks(const std::filesystem::path& path, std::span<const Track> tracks) {
    OutputFile file(path);
    file.writer().text("time,id,class,x,y,z,yaw,pitch,roll,length,width,height,object\n");
    for (const Track& track : tracks)
        for (const auto& [time_s, pose] : track.path.poses()) {
            const Vec3d x = rotate(pose.rotation, {1, 0, 0}), y = rotate(pose.rotation, {0, 1, 0});
            const Vec3d z = rotate(pose.rotation, {0, 0, 1}), at = pose.translation;
            const ObjectSize& s = track.size;
            char time[64], numbers[512];
            std::snprintf(time, sizeof time, "%.6f,", time_s);
            std::snprintf(numbers, sizeof numbers, ",%.4f,%.4f,%.4f,%.6f,%.6f,%.6f,%.3f,%.3f,%.3f,", at.x,
                          at.y, at.z, exact::atan2(x.y, x.x), -exact::asin(x.z), exact::atan2(y.z, z.z),
                          s.length_m, s.width_m, s.height_m);
            file.writer().text(time + csv_cell(track.name) + "," + csv_cell(track.class_name) + numbers +
                               csv_cell(track.object_name) + "\n");
        }
    file.commit();
}

}  // namespace citysplat
