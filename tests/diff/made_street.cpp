#include "diff/made_street.hpp"

#include "core/math/rng_hd.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numbers>

namespace citysplat::test {

namespace {

constexpr double kSpeed_m_s = 8, kTurns_per_s = 10, kHeight_m = 2, kRange_m = 40;
constexpr int kBeams = 24, kColumns = 120;

/// The first box that a ray meets, or the ground.
struct Hit {
    double range_m = kRange_m;
    std::uint16_t label = 0;
    bool any = false;
};

void meet(const Box& box, Vec3d o, Vec3d inverse, Hit& hit) {
    double in = 0, out = hit.range_m;
    const double low[3]{box.min.x - o.x, box.min.y - o.y, box.min.z - o.z};
    const double high[3]{box.max.x - o.x, box.max.y - o.y, box.max.z - o.z};
    const double by[3]{inverse.x, inverse.y, inverse.z};
    for (int a = 0; a < 3; ++a) {
        const double first = low[a] * by[a], second = high[a] * by[a];
        in = std::max(in, std::min(first, second));
        out = std::min(out, std::max(first, second));
    }
    if (in > 0.3 && in < out) hit = {in, box.label, true};
}

/// Boxes of a label one after the other, with the box around them: most rays pass by a whole tree.
struct Group {
    Box around;
    std::vector<Box> boxes;
};

std::vector<Group> groups_of(const Scene& scene) {
    std::vector<Group> groups;
    for (const Box& box : scene.boxes) {
        const bool joins = !groups.empty() && (box.label == kLeaves || box.label == kBars) &&
                           groups.back().around.label == box.label &&
                           std::abs(groups.back().around.min.x - box.min.x) < 8;
        if (!joins) groups.push_back({box, {}});
        Box& around = groups.back().around;
        around.min = {std::min(around.min.x, box.min.x), std::min(around.min.y, box.min.y),
                      std::min(around.min.z, box.min.z)};
        around.max = {std::max(around.max.x, box.max.x), std::max(around.max.y, box.max.y),
                      std::max(around.max.z, box.max.z)};
        groups.back().boxes.push_back(box);
    }
    return groups;
}

Hit cast(const std::vector<const Group*>& near, Vec3d o, Vec3d d) {
    Hit hit;
    if (d.z < 0 && -o.z / d.z < hit.range_m) hit = {-o.z / d.z, kGround, true};
    const Vec3d inverse{1 / d.x, 1 / d.y, 1 / d.z};
    for (const Group* group : near) {
        Hit around = hit;
        around.any = false;
        meet(group->around, o, inverse, around);
        if (!around.any) continue;
        for (const Box& box : group->boxes) meet(box, o, inverse, hit);
    }
    return hit;
}

}  // namespace

Scene Scene::street(double length_m) {
    Scene s;
    s.add({-40, 9, 0}, {length_m + 80, 0.3, 7}, kWall);
    s.add({-40, -9.3, 0}, {length_m + 80, 0.3, 7}, kWall);
    const auto draw = [](double x, std::uint64_t what, double low, double high) {
        return rng::uniform(rng::key(77, static_cast<std::uint64_t>(x * 16)), what, low, high);
    };
    for (double x = 3; x < length_m; x += 20) {
        s.add({x, 6.2, 0}, {0.12, 0.12, 5}, kThing);     // a lamp post
        s.add({x + 4, -7, 0}, {4.2, 1.8, 1.5}, kThing);  // something parked
        for (double bar = 0; bar < 5; bar += 0.13)       // a fence in front of the wall
            s.add({x + 8 + bar, 7.5, 0}, {0.02, 0.02, 1.4}, kBars);
        for (int leaf = 0; leaf < 140; ++leaf) {  // a tree
            const double at = x + 0.03125 * leaf;
            const Vec3d p{x + 14 + draw(at, 1, -1.3, 1.3), -6.5 + draw(at, 2, -1.3, 1.3),
                          3.5 + draw(at, 3, -1.3, 1.3)};
            s.add(p, {0.09, 0.09, 0.02}, kLeaves);
        }
    }
    return s;
}

std::size_t drive_through(const Scene& scene, double length_m, const MadeDrive& drive,
                          const std::filesystem::path& directory, const std::string& name) {
    const double end_s = length_m / kSpeed_m_s;
    const auto error = [&](double t) {
        const auto wave = [&](std::uint64_t axis) {
            return drive.localisation_m *
                   std::sin(t / 7 + rng::uniform(rng::key(drive.seed, axis), 9, 0, 2 * std::numbers::pi));
        };
        return Vec3d{wave(1), wave(2), wave(3)} + drive.shift;
    };
    std::ofstream way(directory / (name + ".tum"));
    way.precision(12);
    for (double t = -0.5; t < end_s + 0.5; t += 1.0 / 64) {
        const Vec3d e = error(t);
        way << drive.begin_s + t << ' ' << kSpeed_m_s * t + e.x << ' ' << drive.y_m + e.y << ' '
            << kHeight_m + e.z << " 0 0 0 1\n";
    }
    const std::vector<Group> groups = groups_of(scene);
    std::vector<CloudPoint> points;
    for (int turn = 0; turn < static_cast<int>(end_s * kTurns_per_s); ++turn) {
        const double x = kSpeed_m_s * turn / kTurns_per_s;
        std::vector<const Group*> near;
        for (const Group& group : groups)
            if (group.around.max.x > x - kRange_m && group.around.min.x < x + kRange_m + 1)
                near.push_back(&group);
        for (int column = 0; column < kColumns; ++column) {
            const double t = (turn + static_cast<double>(column) / kColumns) / kTurns_per_s;
            const Vec3d origin{kSpeed_m_s * t, drive.y_m, kHeight_m}, e = error(t);
            for (int beam = 0; beam < kBeams; ++beam) {
                const std::uint64_t ray = rng::key(
                    drive.seed, static_cast<std::uint64_t>((turn * kColumns + column) * kBeams + beam));
                // The turns of two drives do not begin in the same direction.
                const double azimuth = 2 * std::numbers::pi *
                                       (column + rng::uniform(rng::key(drive.seed, 1), 3, 0, 1)) / kColumns;
                const double elevation = (-32 + 48.0 * beam / (kBeams - 1)) * std::numbers::pi / 180;
                const Vec3d d{std::cos(elevation) * std::cos(azimuth),
                              std::cos(elevation) * std::sin(azimuth), std::sin(elevation)};
                const Hit hit = cast(near, origin, d);
                if (!hit.any) continue;
                // A sum of twelve uniform numbers is nearly normal.
                double noise = -6;
                for (std::uint64_t i = 0; i < 12; ++i) noise += rng::uniform(ray, 10 + i, 0, 1);
                const Vec3d p = origin + d * (hit.range_m + drive.noise_m * noise) + e;
                points.push_back({.x = p.x,
                                  .y = p.y,
                                  .z = p.z,
                                  .gps_time = drive.begin_s + t,
                                  .label = hit.label,
                                  .intensity = 1000});
            }
        }
    }
    write_cloud(directory / (name + ".cloud"), points);
    return points.size();
}

}  // namespace citysplat::test
