#include "objects/driven_van.hpp"
#include "run_json.hpp"

#include <filesystem>
#include <fstream>
#include <map>

namespace test = citysplat::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// A van driven past a sensor, with its boxes as a CSV file.
struct TrackedDrive : test::DrivenVan {
    std::string tracks = dir / "tracks.csv", poses = dir / "poses.txt";

    TrackedDrive() {
        const auto of_van = track(0);
        std::ofstream csv(tracks);
        csv << "time,id,class,x,y,z,yaw,length,width,height\n";
        for (const auto& p : of_van.path.poses()) {
            const auto& at = p.world_from_body.translation;
            csv << std::fixed << p.time_s << ",7,Car," << at.x << "," << at.y << "," << at.z
                << ",0,4.6,1.8,1.55\n";
        }
        std::ofstream(poses) << "999 0 0 1.8 0 0 0 1\n1003 0 0 1.8 0 0 0 1\n";
    }
    std::vector<std::string> command(const std::string& bank,
                                     const std::vector<std::string>& more = {}) const {
        std::vector<std::string> all{"bank", "build",     dir / bank, "--tracks", tracks,  "--trajectory",
                                     poses,  "--classes", "pandaset", "--source", "drive", "--scans"};
        all.insert(all.end(), files.begin(), files.end());
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
};

/// All files below a folder with their bytes.
std::map<std::string, std::string> contents(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) {
            std::ifstream in(entry.path(), std::ios::binary);
            all[fs::relative(entry.path(), folder)] = {std::istreambuf_iterator<char>(in), {}};
        }
    return all;
}

}  // namespace

TEST_CASE("a bank is built from tracks and scans, listed and drawn") {
    const TrackedDrive d;
    const json built = test::run_json(d.command("bank", {"--aligned-tracks", d.dir / "aligned.csv"}),
                                      {"objects", "left_out", "box_times", "points_inside_boxes/exact"});
    REQUIRE(built["objects"].size() == 1);
    CHECK(built["box_times"] == "exact");
    const json& van = built["objects"][0];
    CHECK(van["name"] == "drive-7");
    CHECK(van["label"] == 13);
    CHECK(van["frames"] == 10);
    CHECK(van["thickness_m"] < 0.03);
    CHECK(van["mirrored_share"] > 0.1);
    const json listed = test::run_json({"bank", "list", d.dir / "bank"});
    CHECK(listed["objects"][0] == van);
    test::run_json({"bank", "picture", d.dir / "bank", "--out", d.dir / "pictures"}, {"files"});
    CHECK(fs::file_size(d.dir / "pictures/drive-7.png") > 1000);
    // Corrected tracks are tracks.
    const json again =
        test::run_json({"bank", "build", d.dir / "again", "--tracks", d.dir / "aligned.csv", "--classes",
                        "pandaset", "--trajectory", d.poses, "--scans", d.files[4], d.files[5]});
    CHECK(again["objects"].size() == 1);
    const auto missing = test::citysplat({"bank", "picture", d.dir / "bank", "truck", "--out", d.dir / "p"});
    CHECK(missing.exit_code == 2);
    CHECK_THAT(missing.err, Catch::Contains("drive-7"));
}

TEST_CASE("a bank has the same bytes for any number of threads and order of scans") {
    const TrackedDrive d;
    test::run_json(d.command("one", {"--threads", "1"}));
    test::run_json(d.command("many", {"--threads", "4", "--memory", "128M"}));
    auto backwards = d.command("backwards");
    std::reverse(backwards.end() - static_cast<std::ptrdiff_t>(d.files.size()), backwards.end());
    test::run_json(backwards);
    const auto one = contents(d.dir / "one");
    CHECK(one.size() == 2);
    CHECK(contents(d.dir / "many") == one);
    CHECK(contents(d.dir / "backwards") == one);
}

TEST_CASE("bank build leaves folders of others alone and says why a track is left out") {
    const TrackedDrive d;
    fs::create_directory(d.dir / "mine");
    std::ofstream(d.dir / "mine/thesis.txt") << "years of work";
    const auto refused = test::citysplat(d.command("mine"));
    CHECK(refused.exit_code == 78);
    CHECK(contents(d.dir / "mine").size() == 1);
    const json few = test::run_json(d.command("few", {"--least-points", "1000000"}));
    REQUIRE(few["left_out"].size() == 1);
    CHECK(few["left_out"][0]["reason"].get<std::string>().find("points are in its boxes") !=
          std::string::npos);
}

TEST_CASE(
    "objects of tracks with odd names are drawn, and their tracks are written so that they can be read") {
    const TrackedDrive d;
    std::ifstream in(d.tracks);
    std::string line, csv;
    while (std::getline(in, line)) {
        const std::size_t id = line.find(",7,");
        if (id != std::string::npos) line.replace(id, 3, ",\"26/3, left\",");
        csv += line + "\n";
    }
    std::ofstream(d.tracks) << csv;
    const std::string aligned = d.dir / "aligned.csv";
    const json built = test::run_json(d.command("bank", {"--aligned-tracks", aligned}));
    REQUIRE(built["objects"].size() == 1);
    CHECK(built["objects"][0]["name"] == "drive-26/3, left");
    const json pictures = test::run_json({"bank", "picture", d.dir / "bank", "--out", d.dir / "pictures"});
    CHECK(pictures["files"] == json::array({(d.dir / "pictures/drive-26_3, left.png").string()}));
    CHECK(fs::file_size(d.dir / "pictures/drive-26_3, left.png") > 1000);
    const json again =
        test::run_json({"bank", "build", d.dir / "again", "--tracks", aligned, "--classes", "pandaset",
                        "--trajectory", d.poses, "--scans", d.files[4], d.files[5]});
    REQUIRE(again["objects"].size() == 1);
    CHECK(again["objects"][0]["track"] == "26/3, left");
}

TEST_CASE("a place where the aligned tracks cannot be written is told before the work, and costs nothing") {
    const TrackedDrive d;
    const auto refused = test::citysplat(d.command("bank", {"--aligned-tracks", d.dir / "no/such/file.csv"}));
    CHECK(refused.exit_code == 74);
    CHECK_THAT(refused.err, Catch::Contains("file.csv"));
    CHECK_FALSE(fs::exists(d.dir / "bank/splats"));
}
