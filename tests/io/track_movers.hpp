#pragma once

#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "io/drive_writer.hpp"
#include "io/tracks/track_file.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

/// Some objects whose places are known at any time, for tests of all formats of tracks.
namespace citysplat::test {

using Format = TrackOptions::Format;

/// Two cars and a person: where they are at any time, as closed formulas, and how they look.
struct Mover {
    std::string name, class_name;
    ObjectSize size;
    Vec3d start, speed;
    double yaw, yaw_rate, pitch, roll;

    Pose at(double time_s) const {
        return {start + time_s * speed, from_yaw_pitch_roll(yaw + yaw_rate * time_s, pitch, roll)};
    }
};

/// Far from the origin, as a city in UTM is.
inline const std::vector<Mover> kMovers{
    {"12", "Car", {4.6, 1.9, 1.5}, {651010, 6861020, 35.2}, {9, -3, 0.1}, -0.3, 0.2, 0, 0},
    {"7", "Van", {5.3, 2.1, 2.4}, {651035, 6860990, 34.9}, {-6, 12, 0}, 2.0, -0.1, 0, 0},
    {"3", "Pedestrian", {0.6, 0.7, 1.8}, {651001, 6861001, 35}, {0.5, 1.2, 0}, 1.2, 0.5, 0, 0}};
inline constexpr int kFrames = 12;
inline constexpr double kStep_s = 0.1, kBegin_s = 100;

inline double time_of(int frame) { return kBegin_s + frame * kStep_s; }

inline double degrees_between(const Quaternion& a, const Quaternion& b) {
    const Quaternion d = conjugate(a) * b;
    const double v = std::sqrt(d.x * d.x + d.y * d.y + d.z * d.z);
    return 2 * std::atan2(v, std::fabs(d.w)) / exact::kRadPerDegree;
}

/// Holds what was read against where the objects are, at and between the frames.
inline void check(const TrackFile& file, const std::vector<Mover>& movers, double begin_s = kBegin_s,
                  bool same_name = true) {
    REQUIRE(file.tracks.size() == movers.size());
    for (std::size_t i = 0; i < movers.size(); ++i) {
        const Track& track = file.tracks[i];
        const Mover& mover = movers[i];
        INFO(mover.name);
        if (same_name) CHECK(track.name == mover.name);
        CHECK(track.class_name == mover.class_name);
        CHECK(track.size.length_m == Approx(mover.size.length_m).margin(1e-3));
        CHECK(track.size.width_m == Approx(mover.size.width_m).margin(1e-3));
        CHECK(track.size.height_m == Approx(mover.size.height_m).margin(1e-3));
        CHECK(track.begin_s == Approx(begin_s).margin(1e-4));
        CHECK(track.exists(begin_s + (kFrames - 1) * kStep_s - 1e-4));
        CHECK_FALSE(track.exists(begin_s + kFrames * kStep_s));
        for (double since = 0; since < (kFrames - 1) * kStep_s; since += 0.034) {
            const Pose got = track.pose_at(begin_s + since), want = mover.at(since);
            CHECK(length(got.translation - want.translation) < 1e-3);
            CHECK(degrees_between(got.rotation, want.rotation) < 0.01);
        }
    }
}

inline TrackOptions as(Format format) {
    TrackOptions options;
    options.format = format;
    return options;
}

template <class Read>
std::string message_of(Read&& read) {
    try {
        read();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

/// The car that records: moves, turns and leans.
inline Pose sensor_at(int frame) {
    return {{651000 + 0.8 * frame, 6861000 - 0.3 * frame, 36.7},
            from_yaw_pitch_roll(0.4 + 0.03 * frame, 0.01, -0.02)};
}

/// Poses of the sensor as a TUM file.
inline void write_sensor(const std::filesystem::path& path) {
    std::string text;
    for (int f = 0; f < kFrames; ++f) {
        const Pose p = sensor_at(f);
        for (const double v : {time_of(f), p.translation.x, p.translation.y, p.translation.z, p.rotation.x,
                               p.rotation.y, p.rotation.z, p.rotation.w})
            text += number(v) + " ";
        text += "\n";
    }
    write_text(path, text);
}

/// The movers as tracklets of a KITTI raw drive.
inline std::string tracklets_xml() {
    std::string xml =
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\" ?>\n<!DOCTYPE boost_serialization>\n"
        "<boost_serialization signature=\"serialization::archive\" version=\"9\">\n<tracklets class_id=\"0\" "
        "tracking_level=\"0\" version=\"0\">\n<count>3</count><item_version>1</item_version>\n";
    for (const Mover& m : kMovers) {
        xml += "<item class_id=\"1\"><objectType>" + m.class_name + "</objectType><h>" +
               number(m.size.height_m) + "</h><w>" + number(m.size.width_m) + "</w><l>" +
               number(m.size.length_m) +
               "</l><first_frame>0</first_frame><poses class_id=\"2\"><count>12</count>\n";
        for (int f = 0; f < kFrames; ++f) {
            const Pose p = inverse(sensor_at(f)) * m.at(f * kStep_s);
            const Vec3d x = rotate(p.rotation, {1, 0, 0}), z = rotate(p.rotation, {0, 0, 1}),
                        y = rotate(p.rotation, {0, 1, 0});
            xml += "<item><tx>" + number(p.translation.x) + "</tx><ty>" + number(p.translation.y) +
                   "</ty><tz>" + number(p.translation.z) + "</tz><rx>" + number(std::atan2(y.z, z.z)) +
                   "</rx><ry>" + number(-std::asin(x.z)) + "</ry><rz>" + number(std::atan2(x.y, x.x)) +
                   "</rz><state>2</state></item>\n";
        }
        xml += "</poses><finished>1</finished></item>\n";
    }
    return xml + "</tracklets>\n</boost_serialization>\n";
}

}  // namespace citysplat::test
