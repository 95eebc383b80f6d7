#include "objects/box_times.hpp"
#include "objects/driven_van.hpp"
#include "objects/track_cut.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

using namespace citysplat;
using namespace citysplat::objects;

namespace {

const CancelToken kNeverCancelled;

struct DrivenVan : test::DrivenVan {
    using test::DrivenVan::DrivenVan;

    ScanInputs scans(bool labels = true) const {
        ScanInputs inputs;
        inputs.sources = expand_inputs(files);
        inputs.trajectory = Trajectory(std::vector<StampedPose>{{999, {sensor, {}}}, {1002, {sensor, {}}}});
        if (labels) inputs.classes = ClassMap::load("pandaset");
        return inputs;
    }
};

double mean_distance(const ObjectCut& cut) {
    double sum = 0, n = 0;
    for (const ObjectFrame& f : cut.frames)
        for (const ObjectPoint& p : f.points) sum += test::distance_to(test::van(), p.place), n += 1;
    return sum / n;
}

}  // namespace

TEST_CASE("points are cut by the box at their own time") {
    const DrivenVan drive;
    const std::vector<Track> tracks{drive.track(0)};
    const BoxTimeStudy study = study_box_times(drive.scans(), tracks, BoxTimes::automatic, kNeverCancelled);
    CHECK(study.chosen == BoxTimes::exact);
    const auto cuts = cut_tracks(drive.scans(), study.tracks, kNeverCancelled);
    REQUIRE(cuts.size() == 1);
    CHECK(cuts[0].frames.size() == 10);
    CHECK(cuts[0].points > 2000);
    CHECK(cuts[0].ground_points > 0);
    CHECK(mean_distance(cuts[0]) < 0.001);
    for (const ObjectFrame& f : cuts[0].frames)
        for (const ObjectPoint& p : f.points) {
            const Vec3d sensor = drive.sensor - drive.pose_at(p.time_s - 1000).translation;
            REQUIRE(length(p.place + p.to_sensor - sensor) < 0.001);
        }
}

TEST_CASE("boxes drawn around the points of a scan get the time at which the object was seen") {
    const DrivenVan drive;
    const std::vector<Track> tracks{drive.drawn_track()};
    const BoxTimeStudy study = study_box_times(drive.scans(), tracks, BoxTimes::automatic, kNeverCancelled);
    INFO("exact " << study.inside[0] << " begin " << study.inside[1] << " middle " << study.inside[2]
                  << " end " << study.inside[3]);
    CHECK(study.chosen == BoxTimes::end);
    const auto cuts = cut_tracks(drive.scans(), study.tracks, kNeverCancelled);
    CHECK(cuts[0].points > 2000);
    CHECK(mean_distance(cuts[0]) < 0.05);
    // By their stamps the boxes are more than half a metre off.
    const auto wrong = study_box_times(drive.scans(), tracks, BoxTimes::exact, kNeverCancelled);
    CHECK(cut_tracks(drive.scans(), wrong.tracks, kNeverCancelled)[0].points * 10 < cuts[0].points * 8);
}

TEST_CASE("without labels the ground under an object is found by a plane") {
    const DrivenVan drive(false);
    const std::vector<Track> tracks{drive.track(0)};
    const BoxTimeStudy study = study_box_times(drive.scans(false), tracks, BoxTimes::exact, kNeverCancelled);
    const auto cuts = cut_tracks(drive.scans(false), study.tracks, kNeverCancelled);
    CHECK(cuts[0].points > 2000);
    CHECK(mean_distance(cuts[0]) < 0.001);
    CHECK(cuts[0].ground_points > 100);
}

TEST_CASE("a cut does not depend on the order of the files") {
    const DrivenVan drive;
    const std::vector<Track> tracks{drive.track(0)};
    ScanInputs backwards = drive.scans();
    std::reverse(backwards.sources.begin(), backwards.sources.end());
    const auto a = cut_tracks(drive.scans(), tracks, kNeverCancelled);
    const auto b = cut_tracks(backwards, tracks, kNeverCancelled);
    REQUIRE(a[0].points == b[0].points);
    REQUIRE(a[0].frames.size() == b[0].frames.size());
    for (std::size_t f = 0; f < a[0].frames.size(); ++f) {
        CHECK(a[0].frames[f].time_s == b[0].frames[f].time_s);
        for (std::size_t i = 0; i < a[0].frames[f].points.size(); ++i) {
            const ObjectPoint &p = a[0].frames[f].points[i], &q = b[0].frames[f].points[i];
            REQUIRE_FALSE((comes_before(p, q) || comes_before(q, p)));
        }
    }
}

TEST_CASE("scans without times are refused with the way out") {
    test::TempDir dir;
    const std::string name = (dir / "plain.xyz").string();
    std::ofstream(name) << "x y z\n1 2 3\n2 3 4\n";
    ScanInputs inputs;
    inputs.sources = expand_inputs(std::vector<std::string>{name});
    const std::vector<Track> tracks{Track::along("a", Trajectory(std::vector<StampedPose>{{0, {}}}))};
    CHECK_THROWS_WITH(cut_tracks(inputs, tracks, kNeverCancelled),
                      Catch::Contains("plain.xyz") && Catch::Contains("no times"));
}
