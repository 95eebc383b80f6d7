#include "io/tracks/track_writer.hpp"

#include "core/csv_cell.hpp"
#include "core/math/math_hd.hpp"
#include "core/output_file.hpp"

#include <cstdio>
#include <set>
#include <string>
#include <utility>

namespace citysplat {

namespace {

std::string time_cell(double time_s) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6f,", time_s);
    return text;
}

}  // namespace

void write_tracks(const std::filesystem::path& path, std::span<const Track> tracks) {
    OutputFile file(path);
    file.writer().text("time,id,class,x,y,z,yaw,pitch,roll,length,width,height,object\n");
    // An object that changes its look has several tracks, each of which ends with the first pose of the next.
    std::set<std::pair<std::string, std::string>> begins;
    for (const Track& track : tracks)
        if (!track.path.empty()) begins.emplace(track.name, time_cell(track.path.begin_s()));
    for (const Track& track : tracks)
        for (const auto& [time_s, pose] : track.path.poses()) {
            const std::string time = time_cell(time_s);
            if (time_s > track.path.begin_s() && begins.contains({track.name, time})) continue;
            const Vec3d x = rotate(pose.rotation, {1, 0, 0}), y = rotate(pose.rotation, {0, 1, 0});
            const Vec3d z = rotate(pose.rotation, {0, 0, 1}), at = pose.translation;
            const ObjectSize& s = track.size;
            char numbers[512];
            std::snprintf(numbers, sizeof numbers, ",%.4f,%.4f,%.4f,%.6f,%.6f,%.6f,%.3f,%.3f,%.3f,", at.x,
                          at.y, at.z, exact::atan2(x.y, x.x), -exact::asin(x.z), exact::atan2(y.z, z.z),
                          s.length_m, s.width_m, s.height_m);
            file.writer().text(time + csv_cell(track.name) + "," + csv_cell(track.class_name) + numbers +
                               csv_cell(track.object_name) + "\n");
        }
    file.commit();
}

}  // namespace citysplat
