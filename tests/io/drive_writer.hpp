#pragma once

#include "core/file.hpp"
#include "io/room_drive.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

/// Writes the rays of a RoomDrive as the data sets have them.
namespace citysplat::test {

inline void write_text(const std::filesystem::path& path, std::string_view text) {
    std::filesystem::create_directories(path.parent_path());
    FileWriter out(path);
    out.text(text);
    out.finish();
}

inline std::string number(double v) {
    char text[64];
    std::snprintf(text, sizeof text, "%.15g", v);
    return text;
}

inline std::string file_number(int i) {
    char text[32];
    std::snprintf(text, sizeof text, "%010d", i);
    return text;
}

inline void put_float(std::string& bytes, double v) {
    const float f = static_cast<float>(v);
    bytes.append(reinterpret_cast<const char*>(&f), sizeof f);
}

/// "2011-09-26 13:02:25.594360375"; seconds count from 13:00:00 of that day.
inline std::string stamp(double seconds) {
    const int minutes = static_cast<int>(seconds / 60);
    char text[64];
    std::snprintf(text, sizeof text, "2011-09-26 13:%02d:%012.9f\n", minutes, seconds - 60 * minutes);
    return text;
}
inline constexpr double kStampZero_s = 1317042000;  // 2011-09-26 13:00:00

inline std::string matrix_line(const Pose& pose) {
    std::string line;
    const Vec3d columns[]{rotate(pose.rotation, {1, 0, 0}), rotate(pose.rotation, {0, 1, 0}),
                          rotate(pose.rotation, {0, 0, 1}), pose.translation};
    for (const auto axis : {&Vec3d::x, &Vec3d::y, &Vec3d::z})
        for (const Vec3d& column : columns) line += number(column.*axis) + " ";
    return line + "\n";
}

/// Records of a scan: `place` says where a ray's end is in the file.
inline std::string records(const std::vector<TrueRay>& rays,
                           const std::function<Vec3d(const TrueRay&)>& place, bool ring = false) {
    std::string bytes;
    for (const TrueRay& ray : rays) {
        const Vec3d p = place(ray);
        for (const double v : {p.x, p.y, p.z, 0.5}) put_float(bytes, v);
        if (ring) put_float(bytes, ray.beam);
    }
    return bytes;
}

/// The plane of KITTI's maps around this place.
struct OxtsWriter {
    double latitude_deg = 49.01, longitude_deg = 8.4, altitude_m = 115;

    std::string line(const RoomDrive& drive, double t) const {
        const Pose pose = drive.body_at(t);
        const double scale = std::cos(latitude_deg * exact::kRadPerDegree) * 6378137;
        const double zero = std::log(std::tan((90 + latitude_deg) * exact::kRadPerDegree / 2));
        const double latitude =
            2 * std::atan(std::exp(zero + pose.translation.y / scale)) * exact::kDegreesPerRad - 90;
        const double longitude = longitude_deg + pose.translation.x / scale * exact::kDegreesPerRad;
        const Vec3d ahead = rotate(pose.rotation, {1, 0, 0}), v = drive.velocity_at(t);
        const double yaw = std::atan2(ahead.y, ahead.x), pitch = -std::asin(ahead.z);
        std::string text;
        for (const double value :
             {latitude, longitude, pose.translation.z + altitude_m, 0.0, pitch, yaw, v.y, v.x})
            text += number(value) + " ";
        return text + "9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0.02 0.01 4 10 4 4 4\n";
    }
};

}  // namespace citysplat::test
