#include "objects/bank_builder.hpp"

#include "objects/driven_van.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::objects;

TEST_CASE("an aligned track goes on as the boxes do beyond the looks that were aligned") {
    const test::TempDir dir;
    const test::DrivenVan drive;
    const std::vector<Track> tracks{drive.track(0)};
    ScanInputs scans;
    scans.sources = expand_inputs(drive.files);
    scans.classes = ClassMap::load("pandaset");
    BankWriter writer(dir / "bank");
    BankBuildOptions options;
    options.source = "drive";
    Progress silent;
    const BankReport report = build_bank(writer, {tracks, scans}, options, CancelToken(), silent);
    REQUIRE(report.kept() == 1);
    const std::vector<Track> aligned = report.aligned_tracks();
    CHECK(aligned[0].object_name == report.tracks[0].object->name);
    CHECK(aligned[0].path.begin_s() <= tracks[0].path.begin_s());
    CHECK(aligned[0].path.end_s() >= tracks[0].path.end_s());
    // At 15 m/s a track that stood for a few milliseconds would be farther off than this.
    for (double t = tracks[0].path.begin_s(); t <= tracks[0].path.end_s(); t += 0.004)
        CHECK(length(aligned[0].pose_at(t).translation - tracks[0].pose_at(t).translation) < 0.06);
}
