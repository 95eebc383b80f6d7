#include "core/error.hpp"
#include "objects/bank_builder.hpp"
#include "objects/driven_van.hpp"
#include "objects/frame_alignment.hpp"
#include "objects/splat_folder.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <thread>

using namespace citysplat;
using namespace citysplat::objects;

namespace {

const CancelToken kNeverCancelled;

BankReport build(const std::filesystem::path& folder, const test::DrivenVan& drive,
                 const std::vector<Track>& tracks) {
    ScanInputs scans;
    scans.sources = expand_inputs(drive.files);
    scans.trajectory =
        Trajectory(std::vector<StampedPose>{{999, {drive.sensor, {}}}, {1002, {drive.sensor, {}}}});
    BankBuildOptions options;
    options.source = "drive";
    Progress silent;
    BankWriter bank(folder);
    BankReport report = build_bank(bank, {tracks, scans}, options, kNeverCancelled, silent);
    bank.commit();
    return report;
}

}  // namespace

TEST_CASE("threads that store the same splats at once all succeed") {
    const test::TempDir dir{test::memory_directory()};
    Splat splat{};
    splat.radius = 100;
    splat.normal = pack_normal({0, 0, 1});
    std::vector<std::string> failures(4);
    for (int round = 0; round < 50; ++round) {
        splat.x = round;
        const SplatTile splats(TileFrame{}, std::vector<Splat>(200, splat));
        std::vector<std::thread> threads;
        for (std::string& failure : failures)
            threads.emplace_back([&] {
                try {
                    SplatFolder(dir / "splats").write(splats, 1);
                } catch (const std::exception& e) {
                    failure = e.what();
                }
            });
        for (std::thread& thread : threads) thread.join();
        for (const std::string& failure : failures) REQUIRE(failure == "");
        // All of them have ended: one of them has written it.
        const StoredSplats stored = SplatFolder(dir / "splats").write(splats, 1);
        REQUIRE(SplatFolder(dir / "splats").read(stored, "splats").digest() == splats.digest());
    }
}

TEST_CASE("no track takes the name of another one's object") {
    const test::DrivenVan drive;
    std::vector<Track> tracks(4, drive.track(0));
    tracks[2].name = "7-2";
    tracks[3].name = "7-3";
    const BankReport report = build(drive.dir / "bank", drive, tracks);
    std::set<std::string> names;
    for (const TrackOutcome& t : report.tracks) {
        REQUIRE(t.object);
        names.insert(t.object->name);
    }
    CHECK(names == std::set<std::string>{"drive-7", "drive-7-4", "drive-7-2", "drive-7-3"});
    CHECK(Bank::open(drive.dir / "bank").objects().size() == 4);
}

TEST_CASE("a box as large as a building is left out, not given the memory of one") {
    const test::DrivenVan drive;
    std::vector<Track> tracks(2, drive.track(0));
    tracks[0].size = {900, 800, 700};
    const BankReport report = build(drive.dir / "bank", drive, tracks);
    CHECK_FALSE(report.tracks[0].object);
    CHECK(report.tracks[0].points > 1000);
    CHECK(report.tracks[0].reason == "its box of 900 × 800 × 700 m is larger than any vehicle");
    CHECK(report.tracks[1].object);
}

TEST_CASE("frames are aligned by the bounds that are asked for") {
    const ObjectCut cut = test::passed_van(11);
    RegistrationOptions impossible;
    impossible.least_inliers = 1.5;
    CHECK(align_frames(cut, {}, kNeverCancelled).accepted > 1);
    CHECK(align_frames(cut, impossible, kNeverCancelled).accepted <= 1);
}
