#include "core/file.hpp"
#include "io/track_movers.hpp"
#include "temp_dir.hpp"

#include <map>

using namespace citysplat;
using namespace citysplat::test;

namespace {

const Pose kCameraFromVelo = Pose{{0.02, -0.07, -0.33}, from_rotation_matrix({0, -1, 0, 0, 0, -1, 1, 0, 0})} *
                             Pose{{0, 0, 0}, from_yaw_pitch_roll(0.01, -0.02, 0.015)};

}  // namespace

TEST_CASE("tracks come back from label_02 of KITTI with calibration and poses") {
    const test::TempDir dir;
    write_sensor(dir / "poses.tum");
    const Pose rectified{{0, 0, 0}, from_yaw_pitch_roll(0.001, 0.008, -0.004)};
    std::string r;
    for (const Vec3d row : {Vec3d{1, 0, 0}, Vec3d{0, 1, 0}, Vec3d{0, 0, 1}}) {
        const Vec3d v = rotate(conjugate(rectified.rotation), row);
        r += number(v.x) + " " + number(v.y) + " " + number(v.z) + " ";
    }
    write_text(dir / "calib.txt",
               "P0: 1 2 3\nR_rect " + r + "\nTr_velo_cam " + test::matrix_line(kCameraFromVelo));
    // Boxes stand upright before the camera: the truth follows from them.
    std::string labels;
    std::map<int, std::vector<std::pair<int, Pose>>> truth;
    for (int f = 0; f < kFrames; ++f)
        for (int i = 0; i < 3; ++i) {
            const double ry = -1 + 0.9 * i + 0.02 * f;
            const Vec3d t{-3.0 + 2 * i + 0.1 * f, 1.7, 12.0 + 5 * i - 0.2 * f};
            const auto to_world = [&](Vec3d v) {
                return sensor_at(f).apply(inverse(kCameraFromVelo).apply(inverse(rectified).apply(v)));
            };
            const Vec3d o = to_world(t), x = to_world(t + Vec3d{std::cos(ry), 0, -std::sin(ry)}) - o,
                        z = to_world(t + Vec3d{0, -1, 0}) - o, y = cross(z, x);
            truth[i].push_back({f, {o, from_rotation_matrix({x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z})}});
            labels += std::to_string(f) + " " + std::to_string(i) + " " + kMovers[i].class_name +
                      " 0 0 -1.5 100 110 200 210 " + number(kMovers[i].size.height_m) + " " +
                      number(kMovers[i].size.width_m) + " " + number(kMovers[i].size.length_m) + " " +
                      number(t.x) + " " + number(t.y) + " " + number(t.z) + " " + number(ry) + "\n";
        }
    labels += "3 -1 DontCare -1 -1 -10 219 188 245 218 -1000 -1000 -1000 -10 -1 -1 -1\n";
    write_text(dir / "0001.txt", labels);
    TrackOptions options;
    options.calibration = dir / "calib.txt";
    options.poses = dir / "poses.tum";
    const TrackFile file = read_tracks(dir / "0001.txt", options);
    REQUIRE(file.tracks.size() == 3);
    for (int i = 0; i < 3; ++i) {
        const Track& track = file.tracks[static_cast<std::size_t>(i)];
        CHECK(track.class_name == kMovers[static_cast<std::size_t>(i)].class_name);
        CHECK(track.size.length_m == Approx(kMovers[static_cast<std::size_t>(i)].size.length_m));
        for (const auto& [f, want] : truth[i]) {
            const Pose got = track.pose_at(time_of(f));
            CHECK(length(got.translation - want.translation) < 1e-3);
            CHECK(degrees_between(got.rotation, want.rotation) < 0.01);
        }
    }
    options.calibration.clear();
    CHECK_THAT(message_of([&] { read_tracks(dir / "0001.txt", options); }),
               Catch::Contains("R_rect and Tr_velo_cam"));
    options.calibration = dir / "calib.txt";
    options.poses.clear();
    CHECK_THAT(message_of([&] { read_tracks(dir / "0001.txt", options); }), Catch::Contains("\"poses\""));
}

TEST_CASE("tracks come back from tracklets of a KITTI raw drive") {
    const test::TempDir dir;
    write_sensor(dir / "poses.tum");
    write_text(dir / "tracklet_labels.xml", tracklets_xml());
    TrackOptions options;
    options.poses = dir / "poses.tum";
    check(read_tracks(dir / "tracklet_labels.xml", options), kMovers, kBegin_s, false);

    // Frames that the poses do not reach.
    std::string late = tracklets_xml();
    late.replace(late.rfind("<first_frame>0"), 14, "<first_frame>5");
    write_text(dir / "late.xml", late);
    CHECK_THAT(message_of([&] { read_tracks(dir / "late.xml", options); }),
               Catch::Contains("object 3: frame 12 has no pose") && Catch::Contains("poses.tum"));
}

TEST_CASE("OXTS records place the boxes of a KITTI drive") {
    const test::TempDir dir;
    std::string lines;
    for (int f = 0; f < kFrames; ++f) {
        std::string line = "49.0 8.0 112.0 0 0 " + number(0.5 + 0.01 * f);
        for (int i = 6; i < 30; ++i) line += " 0";
        lines += line + "\n";
        write_text(dir / ("oxts/data/" + test::file_number(f) + ".txt"), line + "\n");
    }
    write_text(dir / "0001.txt", lines);
    std::string stamps;
    for (int f = 0; f < kFrames; ++f) stamps += test::stamp(10 + 0.1 * f);
    write_text(dir / "oxts/timestamps.txt", stamps);
    write_text(dir / "imu.txt", "calib_time: 25-May-2012 16:47:16\nR: 1 0 0 0 1 0 0 0 1\nT: -0.8 0.3 -0.8\n");
    write_text(dir / "calib.txt", "Tr_imu_velo 1 0 0 -0.8 0 1 0 0.3 0 0 1 -0.8\n");
    write_text(dir / "a.xml", tracklets_xml());
    TrackOptions options;
    options.poses = dir / "oxts";
    options.calibration = dir / "imu.txt";
    const TrackFile raw = read_tracks(dir / "a.xml", options);
    write_text(dir / "oxts/data/3.txt", lines.substr(0, lines.find('\n') + 1));
    CHECK_THAT(message_of([&] { read_tracks(dir / "a.xml", options); }),
               Catch::Contains("another file has the record of frame 3"));
    options.poses = dir / "0001.txt";
    options.calibration = dir / "calib.txt";
    const TrackFile tracking = read_tracks(dir / "a.xml", options);
    REQUIRE(raw.tracks.size() == 3);
    REQUIRE(tracking.tracks.size() == 3);
    CHECK(raw.tracks[0].begin_s == Approx(test::kStampZero_s + 10).epsilon(1e-12));
    CHECK(tracking.tracks[0].begin_s == 0);
    // The unit sits at the origin, turned by its yaw; the Velodyne 0.8 m in front of it and above.
    const Pose velo = Pose{{0, 0, 0}, from_yaw_pitch_roll(0.5, 0, 0)} * Pose{{0.8, -0.3, 0.8}, {}};
    const Pose box = inverse(sensor_at(0)) * kMovers[0].at(0);
    for (const TrackFile* file : {&raw, &tracking})
        CHECK(length(file->tracks[0].path.poses()[0].world_from_body.translation -
                     velo.apply(box.translation)) < 1e-3);
}

TEST_CASE("boxes of KITTI-360 may mirror and may have the number of what moves instead of an instance") {
    const test::TempDir dir;
    // 4 m long, 2 m wide, 1.5 m high, heading north; the second axis points to the wrong side.
    const auto object = [](const std::string& ids, const std::string& frame) {
        return "<o><label>car</label>" + ids + "<timestamp>" + frame +
               "</timestamp><transform><data>0 2 0 10 4 0 0 20 0 0 1.5 5 0 0 0 1</data></transform>"
               "<vertices><data>-0.5 -0.5 -0.5 0.5 0.5 0.5 -0.5 0.5 0.5 0.5 -0.5 0.5</data></vertices></o>";
    };
    write_text(dir / "b.xml", "<opencv_storage>" + object("<dynamicSeq>7</dynamicSeq>", "0") +
                                  object("<dynamicSeq>7</dynamicSeq>", "1") + object("", "-1") +
                                  "</opencv_storage>");
    TrackOptions options;
    options.format = TrackOptions::Format::kitti_360;
    const TrackFile file = read_tracks(dir / "b.xml", options);
    REQUIRE(file.tracks.size() == 2);
    CHECK(file.tracks[0].name == "dynamic/7");
    CHECK(file.tracks[0].path.poses().size() == 2);
    CHECK(file.tracks[1].name == "car");
    for (const Track& track : file.tracks) {
        CHECK(track.size.length_m == Approx(4));
        CHECK(track.size.width_m == Approx(2));
        CHECK(track.size.height_m == Approx(1.5));
        const Pose pose = track.path.poses()[0].world_from_body;
        CHECK(length(pose.translation - Vec3d{10, 20, 4.25}) < 1e-9);
        CHECK(length(rotate(pose.rotation, {1, 0, 0}) - Vec3d{0, 1, 0}) < 1e-9);
        CHECK(length(rotate(pose.rotation, {0, 0, 1}) - Vec3d{0, 0, 1}) < 1e-9);
    }
    write_text(dir / "c.xml", "<opencv_storage>" + object("", "0") + "</opencv_storage>");
    CHECK_THROWS_WITH(read_tracks(dir / "c.xml", options), Catch::Contains("no dynamicSeq"));
}

TEST_CASE("tracks and standing boxes come back from KITTI-360") {
    const test::TempDir dir;
    std::string xml = "<?xml version=\"1.0\"?>\n<opencv_storage>\n";
    int count = 0;
    const auto object = [&](const Mover& m, const Pose& pose, int frame) {
        ++count;
        // The vertices are a box from −0.5 to 0.5; the transform stretches it. Its middle is half up.
        const Vec3d columns[4]{m.size.length_m * rotate(pose.rotation, {1, 0, 0}),
                               m.size.width_m * rotate(pose.rotation, {0, 1, 0}),
                               m.size.height_m * rotate(pose.rotation, {0, 0, 1}),
                               pose.apply({0, 0, m.size.height_m / 2})};
        const std::string tag = "object" + std::to_string(count);
        xml += "<" + tag + "><index>" + std::to_string(count) + "</index><label>" + m.class_name +
               "</label><semanticId>26</semanticId><instanceId>" + m.name + "</instanceId><timestamp>" +
               std::to_string(frame) +
               "</timestamp>\n<transform type_id=\"opencv-matrix\"><rows>4</rows><cols>4"
               "</cols><dt>d</dt><data>\n";
        for (const auto axis : {&Vec3d::x, &Vec3d::y, &Vec3d::z}) {
            for (const Vec3d& column : columns) xml += number(column.*axis) + " ";
            xml += "\n";
        }
        xml +=
            "0. 0. 0. 1.</data></transform><vertices "
            "type_id=\"opencv-matrix\"><rows>8</rows><cols>3</cols><data>\n";
        for (int i = 0; i < 8; ++i)
            xml += std::string(i & 1 ? " 0.5" : " -0.5") + (i & 2 ? " 0.5" : " -0.5") +
                   (i & 4 ? " 0.5\n" : " -0.5\n");
        xml += "</data></vertices></" + tag + ">\n";
    };
    for (int f = 0; f < kFrames; ++f)
        for (const Mover& m : kMovers) object(m, m.at(f * kStep_s), f);
    const std::string moving = xml + "</opencv_storage>\n";
    write_text(dir / "moving.xml", moving);
    std::string times;
    for (int f = 0; f < kFrames; ++f) times += number(time_of(f)) + "\n";
    write_text(dir / "times.txt", times);
    TrackOptions options;
    options.times = dir / "times.txt";
    check(read_tracks(dir / "moving.xml", options), kMovers, kBegin_s, false);

    xml = "<?xml version=\"1.0\"?>\n<opencv_storage>\n";
    object(kMovers[1], kMovers[1].at(0), -1);
    object(kMovers[1], kMovers[1].at(1), -1);
    write_text(dir / "standing.xml", xml + "</opencv_storage>\n");
    const TrackFile standing = read_tracks(dir / "standing.xml", {});
    REQUIRE(standing.tracks.size() == 2);
    CHECK(standing.tracks[0].exists(-1e9));
    CHECK(standing.tracks[0].exists(1e9));
    CHECK(length(standing.tracks[1].pose_at(5).translation - kMovers[1].at(1).translation) < 1e-3);
}
