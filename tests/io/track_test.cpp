#include "core/file.hpp"
#include "io/track_movers.hpp"
#include "io/tracks/track_writer.hpp"
#include "temp_dir.hpp"

#include <nlohmann/json.hpp>

#include <map>

using namespace citysplat;
using namespace citysplat::test;

namespace {

std::string csv_rows(const std::vector<Mover>& movers) {
    std::string text;
    for (int f = 0; f < kFrames; ++f)
        for (const Mover& m : movers) {
            const Pose p = m.at(f * kStep_s);
            text += number(time_of(f)) + ", " + m.name + ", " + m.class_name + ", " +
                    number(p.translation.x) + ", " + number(p.translation.y) + ", " +
                    number(p.translation.z) + ", " + number(m.yaw + m.yaw_rate * f * kStep_s) + ", " +
                    number(m.pitch) + ", " + number(m.roll) + ", " + number(m.size.length_m) + ", " +
                    number(m.size.width_m) + ", " + number(m.size.height_m) + "\n";
        }
    return text;
}

}  // namespace

TEST_CASE("tracks come back from our CSV") {
    const test::TempDir dir;
    std::vector<Mover> movers = kMovers;
    movers[0].pitch = 0.05, movers[1].roll = -0.1;
    write_text(dir / "a.csv",
               "# by hand\ntime, id, class, x, y, z, h, p, r, length, width, height\n" + csv_rows(movers));
    check(read_tracks(dir / "a.csv", {}), movers);
    // Other names, units, separators and orders say the same.
    std::string text = "height;yaw_deg;z;y;x;type;time_s;track_id;width;length;speed\n";
    for (int f = kFrames - 1; f >= 0; --f)
        for (const Mover& m : kMovers) {
            const Pose p = m.at(f * kStep_s);
            for (const double v : {m.size.height_m, (m.yaw + m.yaw_rate * f * kStep_s) / exact::kRadPerDegree,
                                   p.translation.z, p.translation.y, p.translation.x})
                text += number(v) + ";";
            text += m.class_name + ";" + number(time_of(f)) + ";" + m.name + ";" + number(m.size.width_m) +
                    ";" + number(m.size.length_m) + ";13.5\n";
        }
    write_text(dir / "b.csv", text);
    check(read_tracks(dir / "b.csv", {}), kMovers);
}

TEST_CASE("what esmini writes is a CSV of tracks and its rear axle can be told") {
    const test::TempDir dir;
    // Older tools begin with the road, others with the names of the columns.
    const std::string first =
        GENERATE("Version: 2, OpenDRIVE: a.xodr, 3DModel: a.osgb\n", "OpenDRIVE: a.xodr, 3DModel: a.osgb\n",
                 "Version: 4.3, OpenDRIVE: a.xodr, 3DModel: , GIT REV: 1a2b\n", "");
    std::string text = first + "time, id, name, x, y, z, h, p, r, speed, wheel_angle, wheel_rot\n";
    for (int f = 0; f < kFrames; ++f)
        for (const Mover& m : kMovers) {
            const Vec3d axle = m.at(f * kStep_s).apply({-1.4, 0, 0});
            text += number(time_of(f)) + ", " + m.name + ", the " + m.class_name + ", " + number(axle.x) +
                    ", " + number(axle.y) + ", " + number(axle.z) + ", " +
                    number(m.yaw + m.yaw_rate * f * kStep_s) + ", 0.0, 0.0, 9.5, 0.0, 12.7,\n";
        }
    write_text(dir / "a.csv", text);
    TrackOptions options;
    options.reference_m = {-1.4, 0, 0};
    const TrackFile file = read_tracks(dir / "a.csv", options);
    REQUIRE(file.tracks.size() == 3);
    CHECK(file.tracks[1].name == "the Van");
    std::vector<Mover> movers = kMovers;
    for (Mover& m : movers) m.class_name = "", m.size = {};
    check(file, movers, kBegin_s, false);
}

TEST_CASE("tracks that are written come back") {
    const test::TempDir dir;
    std::vector<Track> written;
    for (const Mover& m : kMovers) {
        std::vector<StampedPose> poses;
        for (int f = 0; f < kFrames; ++f) {
            Pose pose = m.at(f * kStep_s);
            pose.rotation = from_yaw_pitch_roll(m.yaw + m.yaw_rate * f * kStep_s, 0.03, -0.05);
            poses.push_back({time_of(f), pose});
        }
        Track track = Track::along(m.name, Trajectory(std::move(poses)));
        track.class_name = m.class_name;
        track.size = m.size;
        track.object_name = "a, b";
        written.push_back(std::move(track));
    }
    write_tracks(dir / "tracks.csv", written);
    const std::vector<Track> read = read_tracks(dir / "tracks.csv", {}).tracks;
    REQUIRE(read.size() == written.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
        CHECK(read[i].name == written[i].name);
        CHECK(read[i].class_name == written[i].class_name);
        CHECK(read[i].object_name == "a, b");
        for (const StampedPose& p : written[i].path.poses()) {
            const Pose got = read[i].pose_at(p.time_s);
            CHECK(length(got.translation - p.world_from_body.translation) < 1e-3);
            CHECK(degrees_between(got.rotation, p.world_from_body.rotation) < 0.01);
        }
    }
}

namespace {

void write_nuscenes(const std::filesystem::path& folder, double step_s) {
    using nlohmann::json;
    json scene{{{"token", "s1"}, {"name", "scene-0001"}}, {{"token", "s2"}, {"name", "scene-0002"}}};
    json sample = json::array(), annotation = json::array(), instance = json::array(),
         category = json::array();
    for (std::size_t i = 0; i < kMovers.size(); ++i) {
        category.push_back({{"token", "c" + kMovers[i].name}, {"name", kMovers[i].class_name}});
        instance.push_back({{"token", kMovers[i].name}, {"category_token", "c" + kMovers[i].name}});
    }
    for (int f = 0; f < kFrames; ++f) {
        const std::string token = "k" + std::to_string(f);
        sample.push_back({{"token", token},
                          {"scene_token", f < 100 ? "s1" : "s2"},
                          {"timestamp", std::llround((kBegin_s + f * step_s) * 1e6)}});
        for (const Mover& m : kMovers) {
            const Pose p = m.at(f * step_s);
            const Vec3d middle = p.apply({0, 0, m.size.height_m / 2});
            annotation.push_back({{"token", "a"},
                                  {"sample_token", token},
                                  {"instance_token", m.name},
                                  {"translation", {middle.x, middle.y, middle.z}},
                                  {"size", {m.size.width_m, m.size.length_m, m.size.height_m}},
                                  {"rotation", {p.rotation.w, p.rotation.x, p.rotation.y, p.rotation.z}}});
        }
    }
    for (const auto& [name, table] : {std::pair{"scene", scene},
                                      {"sample", sample},
                                      {"sample_annotation", annotation},
                                      {"instance", instance},
                                      {"category", category}})
        write_text(folder / (std::string(name) + ".json"), table.dump());
}

}  // namespace

TEST_CASE("tracks come back from the tables of nuScenes") {
    const test::TempDir dir;
    write_nuscenes(dir / "v1.0-mini", kStep_s);
    TrackOptions options;
    options.scene = "scene-0001";
    check(read_tracks(dir / "v1.0-mini", options), kMovers);
    options.scene.clear();
    CHECK_THAT(message_of([&] { read_tracks(dir / "v1.0-mini", options); }),
               Catch::Contains("2 scenes") && Catch::Contains("scene-0001, scene-0002"));
    options.scene = "scene-0003";
    CHECK_THAT(message_of([&] { read_tracks(dir / "v1.0-mini", options); }),
               Catch::Contains("no scene scene-0003"));
    // Between keyframes half a second apart positions are linear and rotations spherical: exact here.
    write_nuscenes(dir / "half", 0.5);
    options.scene = "scene-0001";
    const TrackFile half = read_tracks(dir / "half", options);
    const Pose got = half.tracks[0].pose_at(kBegin_s + 1.23), want = kMovers[0].at(1.23);
    CHECK(length(got.translation - want.translation) < 1e-3);
    CHECK(degrees_between(got.rotation, want.rotation) < 0.01);
}

namespace {

constexpr Vec3d kNetOffset{-650000, -6860000, 0};

std::string fcd(const std::vector<Mover>& movers) {
    std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fcd-export>\n";
    for (int f = 0; f < kFrames; ++f) {
        xml += "  <timestep time=\"" + number(time_of(f)) + "\">\n";
        for (const Mover& m : movers) {
            const bool person = m.class_name == "Pedestrian";
            const Vec3d front = m.at(f * kStep_s).apply({m.size.length_m / 2, 0, 0}) + kNetOffset;
            const double compass = 90 - (m.yaw + m.yaw_rate * f * kStep_s) / exact::kRadPerDegree;
            xml += std::string("    <") + (person ? "person" : "vehicle") + " id=\"" + m.name + "\" x=\"" +
                   number(front.x) + "\" y=\"" + number(front.y) + "\" z=\"" + number(front.z) +
                   "\" angle=\"" + number(compass) + "\" type=\"" + m.class_name +
                   "\" speed=\"9.5\" pos=\"1\" lane=\"e_0\" slope=\"" +
                   number(-m.pitch / exact::kRadPerDegree) + "\"/>\n";
        }
        xml += "  </timestep>\n";
    }
    return xml + "</fcd-export>\n";
}

}  // namespace

TEST_CASE("tracks come back from SUMO with sizes and the offset of the network") {
    const test::TempDir dir;
    std::vector<Mover> movers = kMovers;
    movers[1].pitch = -0.06;
    write_text(dir / "fcd.xml", fcd(movers));
    std::string types = "<additional><vTypeDistribution id=\"d\">\n";
    for (const Mover& m : kMovers)
        types += "<vType id=\"" + m.class_name + "\" length=\"" + number(m.size.length_m) + "\" width=\"" +
                 number(m.size.width_m) + "\" height=\"" + number(m.size.height_m) + "\"/>\n";
    write_text(dir / "types.xml", types + "</vTypeDistribution></additional>\n");
    write_text(dir / "net.xml",
               "<net><location netOffset=\"-650000.00,-6860000.00\" convBoundary=\"0,0,1,1\"/></net>\n");
    TrackOptions options;
    options.types = dir / "types.xml";
    options.network = dir / "net.xml";
    const TrackFile file = read_tracks(dir / "fcd.xml", options);
    check(file, movers);
    CHECK(file.notes.empty());
    // SUMO begins with its configuration, in which the lists of files may be long.
    std::string commented = fcd(movers);
    commented.insert(commented.find("<fcd-export"),
                     "<!-- <configuration>" + std::string(20'000, 'r') + "</configuration> -->\n");
    write_text(dir / "commented.xml", commented);
    check(read_tracks(dir / "commented.xml", options), movers);

    // What is far away in space or time is not kept.
    options.region = Box3d{{651000, 6861000, 0}, {651012, 6861030, 0}};
    const TrackFile near = read_tracks(dir / "fcd.xml", options);
    CHECK(near.tracks.size() == 2);
    CHECK_THAT(near.notes.back(), Catch::Contains("too far away"));
    options.region.reset();
    options.from_s = kBegin_s + 50;
    CHECK(read_tracks(dir / "fcd.xml", options).tracks.empty());

    options.types.clear();
    options.from_s = 0;
    CHECK_THAT(read_tracks(dir / "fcd.xml", options).notes.front(), Catch::Contains("usual car"));
}

TEST_CASE("an object that is absent for a while is two tracks of one name") {
    const test::TempDir dir;
    write_text(dir / "a.csv",
               "time,id,x,y,z,yaw\n0,a,0,0,0,0\n0.1,a,1,0,0,0\n0.3,a,3,0,0,0\n2,a,9,0,0,0\n2.1,a,9,1,0,0\n5,"
               "a,7,0,0,0\n");
    const TrackFile file = read_tracks(dir / "a.csv", {});
    REQUIRE(file.tracks.size() == 3);
    CHECK(file.tracks[1].name == "a");
    CHECK(file.tracks[0].exists(0.25));
    CHECK_FALSE(file.tracks[0].exists(1));
    CHECK(file.tracks[1].exists(2.05));
    // Seen once: half a step on either side.
    CHECK(file.tracks[2].exists(5.04));
    CHECK_FALSE(file.tracks[2].exists(5.2));
    // In SUMO a missing time step is an absence.
    std::string xml = fcd({kMovers[0]});
    const std::size_t third = xml.find("<vehicle", xml.find("time=\"100.3\""));
    xml.erase(third, xml.find("/>", third) + 2 - third);
    write_text(dir / "fcd.xml", xml);
    CHECK(read_tracks(dir / "fcd.xml", {}).tracks.size() == 2);
}

TEST_CASE("an object that changes its look is a flip-book of one name") {
    const test::TempDir dir;
    write_text(dir / "a.csv",
               "time,id,object,x,y,z,yaw\n0,a,left,0,0,0,0\n0.1,a,left,1,0,0,0\n0.2,a,right,2,0,0,0\n"
               "0.3,a,left,3,0,0,0\n");
    const TrackFile file = read_tracks(dir / "a.csv", {});
    REQUIRE(file.tracks.size() == 3);
    CHECK(file.tracks[0].object_name == "left");
    CHECK(file.tracks[1].object_name == "right");
    for (double t = 0.005; t < 0.3; t += 0.01) {
        int there = 0;
        for (const Track& track : file.tracks) {
            if (!track.exists(t)) continue;
            ++there;
            CHECK(track.pose_at(t).translation.x == Approx(10 * t));
            CHECK((track.object_name == "right") == (t >= 0.2));
        }
        CHECK(there == 1);
    }
}

TEST_CASE("a flip-book that is written comes back") {
    const test::TempDir dir;
    write_text(dir / "a.csv",
               "time,id,object,x,y,z,yaw\n0,a,left,0,0,0,0\n0.1,a,left,1,0,0,0\n0.2,a,right,2,0,0,0\n"
               "0.3,a,left,3,0,0,0\n0.4,a,left,4,0,0,0\n");
    const std::vector<Track> written = read_tracks(dir / "a.csv", {}).tracks;
    write_tracks(dir / "b.csv", written);
    const std::vector<Track> read = read_tracks(dir / "b.csv", {}).tracks;
    REQUIRE(read.size() == written.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
        CHECK(read[i].object_name == written[i].object_name);
        CHECK(read[i].begin_s == Approx(written[i].begin_s));
        CHECK(read[i].end_s == Approx(written[i].end_s));
        REQUIRE(read[i].path.poses().size() == written[i].path.poses().size());
    }
}

TEST_CASE("broken tracks are refused by file and line") {
    const test::TempDir dir;
    const auto message = [&](Format format, const std::string& text) {
        write_text(dir / "bad", text);
        TrackOptions options = as(format);
        write_sensor(dir / "poses.tum");
        write_text(dir / "calib.txt", "R_rect 1 0 0 0 1 0 0 0 1\nTr_velo_cam 0 -1 0 0 0 0 -1 0 1 0 0 0\n");
        options.poses = dir / "poses.tum";
        options.calibration = dir / "calib.txt";
        return message_of([&] { read_tracks(dir / "bad", options); });
    };
    const std::string head = "time,id,x,y,z,yaw\n";
    const std::pair<std::string, const char*> tables[]{
        {"", "no line with the names"},
        {"time,x,y,z,yaw\n", "line 1: no column \"id\""},
        {"time,id,x,y,z\n", "line 1: no rotation"},
        {"time,id,x,y,z,yaw,yaw\n", "\"yaw\" is there twice"},
        {head, "no object"},
        {head + "1,a,2,3\n", "line 2: 4 values; the header names 6"},
        {head + "1,a,2,3,4,nan\n", "line 2: \"nan\" is not a number (column yaw)"},
        {head + "1,a,2,x,4,0\n", "line 2: \"x\" is not a number (column y)"},
        {head + "1,a,2,3,4,359\n", "line 2: the angle 359 rad"},
        {head + "1,a,2,3,1e9,0\n", "line 2: position"},
        {head + "1,,2,3,4,0\n", "line 2: an object without id"},
        {head + "1,a,2,3,4,0\n1,a,2,3,5,0\n", "line 3: object \"a\" has another box at the time 1 (line 2)"},
        {"time,id,x,y,z,yaw,class\n1,a,2,3,4,0,Car\n2,a,2,3,4,0,Bus\n",
         "line 3: object \"a\" was of class \"Car\""},
        {"time,id,x,y,z,yaw,length\n1,a,2,3,4,0,-1\n", "line 2: a size of -1"},
        {"time,id,x,y,z,qx,qy,qz,qw\n1,a,2,3,4,0,0,0,2\n", "line 2: the rotation has the length 2"}};
    for (const auto& [text, words] : tables) {
        INFO(text);
        CHECK_THAT(message(Format::csv, text), Catch::Contains("bad") && Catch::Contains(words));
    }
    const std::string kitti = " Car 0 0 0 1 1 2 2 1.5 1.8 4 1 2 10 0.1\n";
    CHECK(message(Format::kitti_tracking, "0 1" + kitti) == "no error");
    CHECK_THAT(message(Format::kitti_tracking, "0 1 Car 0 0\n"), Catch::Contains("line 1: 5 columns"));
    CHECK_THAT(message(Format::kitti_tracking, "0 1" + kitti + "0.5 1" + kitti),
               Catch::Contains("line 2: the frame"));
    CHECK_THAT(message(Format::kitti_tracking, "99 1" + kitti), Catch::Contains("frame 99 has no pose"));
    CHECK_THAT(message(Format::kitti_tracking, "0 1 Car 0 0 0 1 1 2 2 1.5 1.8 4 1 2 10 9\n"),
               Catch::Contains("rotation_y"));

    CHECK_THAT(message(Format::kitti_tracklets, "<tracklets><item>"), Catch::Contains("line 1: not XML"));
    CHECK_THAT(message(Format::kitti_tracklets, "<tracklets><item><h>x</h></item></tracklets>"),
               Catch::Contains("<h>: \"x\" is not a number"));
    CHECK_THAT(
        message(Format::kitti_tracklets, "<tracklets><item><objectType>Car</objectType></item></tracklets>"),
        Catch::Contains("object 1 has no size"));
    CHECK_THAT(message(Format::kitti_tracklets, "<tracklets></tracklets>"), Catch::Contains("no object"));
    std::string gap = tracklets_xml();
    gap.erase(gap.find("<ty>"), gap.find("</ty>") + 5 - gap.find("<ty>"));
    CHECK_THAT(message(Format::kitti_tracklets, gap), Catch::Contains("object 1, pose 1: tx, ty, tz or rz"));

    const std::string box =
        "<opencv_storage><o><semanticId>1</semanticId><instanceId>1</instanceId><timestamp>0"
        "</timestamp><transform><data>";
    const std::string points =
        "</data></transform><vertices><data>0 0 0 1 0 0 0 1 0 0 0 1</data></vertices></o>"
        "</opencv_storage>";
    CHECK(message(Format::kitti_360, box + "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1" + points) == "no error");
    CHECK_THAT(message(Format::kitti_360, box + "1 0 0" + points), Catch::Contains("3 numbers; expected 16"));
    CHECK_THAT(message(Format::kitti_360, box + "1 0 0 0 1 1 0 0 0 0 1 0 0 0 0 1" + points),
               Catch::Contains("right angles"));
    CHECK_THAT(message(Format::kitti_360, box + "1 0 0 0 0 0 0 0 0 0 1 0 0 0 0 1" + points),
               Catch::Contains("flat"));

    const auto sumo = [&](const std::string& inner) {
        return message(Format::sumo, "<fcd-export>\n" + inner + "</fcd-export>\n");
    };
    CHECK_THAT(sumo("<timestep time=\"0\"><vehicle id=\"a\" x=\"1\" y=\"2\"/></timestep>"),
               Catch::Contains("line 2: <vehicle> has no \"angle\""));
    CHECK_THAT(sumo("<timestep time=\"0\"><vehicle id=\"a\" x=\"1\" y=\"inf\" angle=\"0\"/></timestep>"),
               Catch::Contains("line 2: y: \"inf\""));
    CHECK_THAT(sumo("<timestep time=\"1\"/><timestep time=\"1\"/>"), Catch::Contains("does not follow"));
    CHECK_THAT(sumo("<timestep time=\"0:00:01\"/>"), Catch::Contains("human-readable-time"));
    CHECK_THAT(sumo("<vehicle id=\"a\" x=\"1\" y=\"2\" angle=\"0\"/>"),
               Catch::Contains("outside any time step"));
    CHECK_THAT(message(Format::sumo, "<routes/>"), Catch::Contains("expected <fcd-export>"));
    CHECK_THAT(message(Format::sumo, "<fcd-export>"), Catch::Contains("not XML"));

    write_nuscenes(dir / "nu", 0.5);
    TrackOptions options = as(Format::nuscenes);
    options.scene = "scene-0001";
    write_text(dir / "nu/instance.json", "[]");
    CHECK_THAT(message_of([&] { read_tracks(dir / "nu", options); }),
               Catch::Contains("sample_annotation.json: row 1: instance_token"));
    std::filesystem::remove(dir / "nu/sample.json");
    CHECK_THAT(message_of([&] { read_tracks(dir / "nu", options); }), Catch::Contains("sample.json"));
}
