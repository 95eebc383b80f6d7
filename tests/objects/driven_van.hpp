#pragma once

#include "objects/scanned_van.hpp"
#include "temp_dir.hpp"

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace citysplat::test {

/// A van that drives along x at 15 m/s past a sensor that turns ten times a second, on a road, in files of
/// one turn each. Rays are fired from left to right in the order of their azimuths.
struct DrivenVan {
    TempDir dir{memory_directory()};
    double speed_m_s = 15;
    Vec3d sensor{0, 0, 1.8};
    std::vector<std::string> files;

    Pose pose_at(double time_s) const { return {{-10 + speed_m_s * time_s, 6, 0}, {}}; }

    explicit DrivenVan(bool labels = true) {
        for (int turn = 0; turn < 10; ++turn) {
            const std::string name = (dir / ("scan" + std::to_string(turn) + ".ply")).string();
            std::string body;
            std::size_t points = 0;
            for (int column = 0; column < 900; ++column) {
                const double time_s = 0.1 * turn + 0.1 * column / 900;
                const auto a = exact::sin_cos((180 - 0.4 * column) * exact::kRadPerDegree);
                for (double elevation = -24; elevation < 3; elevation += 0.75) {
                    const auto e = exact::sin_cos(elevation * exact::kRadPerDegree);
                    const Vec3d d{a.cos * e.cos, a.sin * e.cos, e.sin};
                    const Pose pose = pose_at(time_s);
                    auto range = range_to(van(), sensor - pose.translation, d);
                    const bool on_van = range.has_value();
                    if (!range && d.z < 0) range = -sensor.z / d.z;
                    if (!range || *range > 60) continue;
                    const Vec3d p = sensor + d * *range;
                    char line[160];
                    std::snprintf(line, sizeof line, "%.4f %.4f %.4f %.6f 100%s\n", p.x, p.y, p.z,
                                  1000 + time_s, labels ? (on_van ? " 13" : " 7") : "");
                    body += line;
                    ++points;
                }
            }
            std::ofstream(name) << "ply\nformat ascii 1.0\nelement vertex " << points
                                << "\nproperty double x\nproperty double y\nproperty double z\n"
                                   "property double time\nproperty uchar intensity\n"
                                << (labels ? "property uchar label\n" : "") << "end_header\n"
                                << body;
            files.push_back(name);
        }
    }

    /// Boxes with the true poses of these times, stamped otherwise.
    Track track(double true_minus_stamp_s) const {
        std::vector<StampedPose> poses;
        for (int turn = 0; turn <= 10; ++turn) {
            const double stamp = 0.1 * turn;
            poses.push_back({1000 + stamp, pose_at(stamp + true_minus_stamp_s)});
        }
        Track t = Track::along("7", Trajectory(poses));
        t.class_name = "Car";
        t.size = van_size();
        return t;
    }

    /// Boxes as people draw them: around the points of each scan, stamped with its end.
    Track drawn_track() const {
        std::vector<StampedPose> poses;
        for (int turn = 0; turn < 10; ++turn) {
            // The sensor looks at the van when it has turned to its azimuth.
            double time_s = 0.1 * turn + 0.05;
            for (int i = 0; i < 20; ++i) {
                const Vec3d v = pose_at(time_s).translation;
                const double turned = 180 - exact::atan2(v.y, v.x) * exact::kDegreesPerRad;
                time_s = 0.1 * turn + 0.1 * turned / 360;
            }
            poses.push_back({1000 + 0.1 * (turn + 1), pose_at(time_s)});
        }
        Track t = Track::along("7", Trajectory(poses));
        t.class_name = "Car";
        t.size = van_size();
        return t;
    }
};

}  // namespace citysplat::test
