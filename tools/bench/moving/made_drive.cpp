#include "bench/moving/made_drive.hpp"

#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"
#include "datasets/synth/actors.hpp"
#include "io/tracks/track_writer.hpp"
#include "io/write/point_sink.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace citysplat::bench {

namespace {

constexpr std::uint32_t kColumns = 2000, kBeams = 64;
constexpr double kTurn_s = 0.1, kSensorHeight_m = 1.8, kFarthest_m = 80;
constexpr double kBegin_s = 1000;  ///< of the clock of the files
constexpr ObjectSize kVanSize{4.6, 1.8, 1.55};

/// Bonnet, cabin and a box at the back.
synth::Geometry van_shape() {
    synth::Geometry shape;
    const auto box = [&](Vec3d min, Vec3d max, std::uint8_t reflectance) {
        shape.of<synth::Box>().push_back({(min + max) * 0.5, (max - min) * 0.5, 1, 0, {0, reflectance}});
    };
    box({-2.3, -0.9, 0.3}, {2.3, 0.9, 0.95}, 20);
    box({-1.4, -0.8, 0.95}, {1.0, 0.8, 1.55}, 45);
    box({-2.3, -0.85, 0.95}, {-1.4, 0.85, 1.25}, 45);
    return shape;
}

synth::Geometry street_shape() {
    synth::Geometry street;
    street.of<synth::Box>().push_back({{0, 0, -0.5}, {500, 12, 0.5}, 1, 0, {0, 15}});
    for (const double y : {-11.0, 11.0})
        street.of<synth::Box>().push_back({{0, y, 3}, {500, 1, 3}, 1, 0, {0, 50}});
    return street;
}

double elevation_rad(std::uint32_t beam) { return (-24 + 0.4 * beam) * exact::kRadPerDegree; }

class Recorder {
  public:
    explicit Recorder(const MadeDrive& drive) : drive_(drive) {}

    Vec3d sensor_at(double time_s) const { return {drive_.sensor_speed_m_s * time_s, 0, kSensorHeight_m}; }

    Pose pose_of(const MadeVan& van, double time_s) const {
        const Vec3d ahead{exact::cos(van.yaw_rad), exact::sin(van.yaw_rad), 0};
        return {van.start + ahead * (van.speed_m_s * (time_s - van.begin_s)),
                from_yaw_pitch_roll(van.yaw_rad, 0, 0)};
    }

    /// The returns of one turn, in the order of their rays.
    PointBatch turn(std::uint32_t number) const {
        PointBatch points;
        for (std::uint32_t column = 0; column < kColumns; ++column) {
            const double time_s = kTurn_s * (number + (column + 0.5) / kColumns);
            const double azimuth = exact::kPi * (1 - 2 * (column + 0.5) / kColumns);
            const std::vector<synth::Actor> vans = vans_at(time_s);
            if (!std::isinf(drive_.rim_m) && !faces(vans, azimuth, sensor_at(time_s))) continue;
            const std::uint64_t noise = rng::key(rng::key(7, number), column);
            for (std::uint32_t beam = 0; beam < kBeams; ++beam)
                cast({azimuth, beam, time_s, rng::gaussian(noise, beam)}, vans, points);
        }
        return points;
    }

    /// The boxes of a van as people draw them, one for each turn in which it is there.
    Track boxes_of(std::size_t number) const {
        const MadeVan& van = drive_.vans[number];
        std::vector<StampedPose> poses;
        for (std::uint32_t turn = 0; turn < drive_.turns; ++turn) {
            const double time_s = kTurn_s * (turn + 0.5);
            if (time_s < van.begin_s || time_s > van.end_s) continue;
            const std::uint64_t k = rng::key(rng::key(8, number), turn);
            const double wrong_rad = drive_.box_noise_deg * exact::kRadPerDegree * rng::gaussian(k, 2);
            Pose pose = pose_of(van, time_s);
            pose.translation.x += drive_.box_noise_m * rng::gaussian(k, 0);
            pose.translation.y += drive_.box_noise_m * rng::gaussian(k, 1);
            pose.rotation = from_yaw_pitch_roll(van.yaw_rad + wrong_rad, 0, 0);
            poses.push_back({kBegin_s + time_s, pose});
        }
        Track track = Track::along(van.name, Trajectory(std::move(poses), van.name));
        track.class_name = "van";
        track.size = kVanSize;
        return track;
    }

  private:
    struct Shot {
        double azimuth_rad;
        std::uint32_t beam;
        double time_s, noise;
    };

    std::vector<synth::Actor> vans_at(double time_s) const {
        std::vector<synth::Actor> there;
        for (const MadeVan& van : drive_.vans) {
            if (time_s < van.begin_s || time_s >= van.end_s) continue;
            const Vec3d at = pose_of(van, time_s).translation;
            there.push_back({at, exact::cos(van.yaw_rad), exact::sin(van.yaw_rad),
                             at + Vec3d{0, 0, kVanSize.height_m / 2}, 2.7, &van_});
        }
        return there;
    }

    /// Whether a ray of this azimuth may pass within the rim of a van.
    bool faces(const std::vector<synth::Actor>& vans, double azimuth, Vec3d sensor) const {
        return std::any_of(vans.begin(), vans.end(), [&](const synth::Actor& van) {
            const Vec3d to = van.centre - sensor;
            const double along = to.x * exact::cos(azimuth) + to.y * exact::sin(azimuth);
            const double beside = to.y * exact::cos(azimuth) - to.x * exact::sin(azimuth);
            return along > 0 && std::fabs(beside) < van.radius + drive_.rim_m;
        });
    }
    bool is_near(const std::vector<synth::Actor>& vans, Vec3d p) const {
        return std::any_of(vans.begin(), vans.end(), [&](const synth::Actor& van) {
            return length(p - van.centre) < van.radius + drive_.rim_m;
        });
    }

    void cast(const Shot& shot, const std::vector<synth::Actor>& vans, PointBatch& points) const {
        const auto a = exact::sin_cos(shot.azimuth_rad), e = exact::sin_cos(elevation_rad(shot.beam));
        const synth::Ray ray{sensor_at(shot.time_s), {a.cos * e.cos, a.sin * e.cos, e.sin}};
        const auto street = synth::intersect_all(street_, ray, kFarthest_m);
        const auto van = synth::intersect(vans, ray, street ? street->encounter.t : kFarthest_m);
        if (!street && !van) return;
        const double range_m = van ? van->encounter.t : street->encounter.t;
        const Vec3d p = ray.origin + ray.direction * (range_m + drive_.range_noise_m * shot.noise);
        if (!van && !is_near(vans, p)) return;
        points.x.push_back(p.x), points.y.push_back(p.y), points.z.push_back(p.z);
        points.gps_time.push_back(kBegin_s + shot.time_s);
        const double reflectance = van ? van->look.reflectance : street->look.reflectance;
        points.intensity.push_back(static_cast<std::uint16_t>(65535 * reflectance));
    }

    const MadeDrive& drive_;
    synth::Geometry van_ = van_shape(), street_ = street_shape();
};

}  // namespace

MadeDrive vans_at_the_seam() {
    MadeDrive drive;
    drive.sensor_speed_m_s = 15;
    // More of a van on one side of the seam: halves of every other scan alone share nothing to be aligned by.
    constexpr double kEach_s = 1, kBehind_m = 12, kBeside_m = 0.45;
    double begin_s = 0;
    for (const double speed : {9.0, 12.0, 15.0, 18.0, 21.0, 25.0}) {
        // In the middle of its span it is so far behind the sensor.
        const double middle_s = begin_s + kEach_s / 2;
        const double x = drive.sensor_speed_m_s * middle_s - kBehind_m - speed * kEach_s / 2;
        drive.vans.push_back(
            {std::to_string(drive.vans.size() + 1), {x, kBeside_m, 0}, 0, speed, begin_s, begin_s + kEach_s});
        begin_s += kEach_s;
    }
    drive.turns = static_cast<std::uint32_t>(std::lround(begin_s / kTurn_s));
    drive.vans.push_back({"left", {90, 3.5, 0}, exact::kPi, 14, 0, drive.seconds()});
    drive.vans.push_back({"right", {-25, -3.5, 0}, 0, 20, 0, drive.seconds()});
    return drive;
}

MadeDrive passing_vans(std::uint32_t count) {
    MadeDrive drive;
    drive.box_noise_m = 0.1, drive.box_noise_deg = 2;
    drive.rim_m = 0.5;
    constexpr double kReach_m = 16;
    double begin_s = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const double speed = 14 + 0.5 * (i % 7), side = i % 2 == 0 ? 1 : -1;
        const double turns = std::ceil(2 * kReach_m / speed / kTurn_s);
        const double end_s = begin_s + turns * kTurn_s;
        drive.vans.push_back({std::to_string(i + 1),
                              {-side * kReach_m, side * (8 + 0.2 * (i % 5)), 0},
                              side > 0 ? 0 : exact::kPi,
                              speed,
                              begin_s,
                              end_s});
        begin_s = end_s;
    }
    drive.turns = static_cast<std::uint32_t>(std::lround(begin_s / kTurn_s));
    return drive;
}

void write_drive(const MadeDrive& drive, const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder / "scans");
    const Recorder recorder(drive);
    parallel_for(drive.turns, [&](std::size_t i) {
        char name[32];
        std::snprintf(name, sizeof name, "%06zu.ply", i);
        const auto file = create_ply(folder / "scans" / name);
        file->write(recorder.turn(static_cast<std::uint32_t>(i)));
        file->finish();
    });
    FileWriter poses(folder / "poses.tum");
    for (std::uint32_t turn = 0; turn <= drive.turns; ++turn) {
        const Vec3d at = recorder.sensor_at(kTurn_s * turn);
        char line[160];
        std::snprintf(line, sizeof line, "%.6f %.6f %.6f %.6f 0 0 0 1\n", kBegin_s + kTurn_s * turn, at.x,
                      at.y, at.z);
        poses.text(line);
    }
    poses.finish();
    std::vector<Track> tracks;
    for (std::size_t i = 0; i < drive.vans.size(); ++i) tracks.push_back(recorder.boxes_of(i));
    write_tracks(folder / "tracks.csv", tracks);
}

}  // namespace citysplat::bench
