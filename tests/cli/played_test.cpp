#include "core/file.hpp"
#include "objects/driven_van.hpp"
#include "run_json.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace test = citysplat::test;
namespace fs = std::filesystem;
using namespace citysplat;
using nlohmann::json;

namespace {

void write(const fs::path& path, const std::string& text) {
    FileWriter out(path);
    out.text(text);
    out.finish();
}

/// A city of the road on which a van was seen, the frames of the van, and a bank with the van in it.
struct RecordedVan : test::DrivenVan {
    std::string city = dir / "city", poses = dir / "poses.txt";

    RecordedVan() {
        write(poses, "999 0 0 1.8 0 0 0 1\n1003 0 0 1.8 0 0 0 1\n");
        // Cars move here: the city has none of them.
        write(dir / "classes.toml",
              "name = \"van\"\nversion = 1\n[[class]]\nlabel = 7\nname = \"road\"\ngroup = \"ground\"\n"
              "[[class]]\nlabel = 13\nname = \"car\"\ngroup = \"surface\"\ndynamic = true\n"
              "[[class]]\nlabel = 14\nname = \"bus\"\ngroup = \"surface\"\ndynamic = true\n");
        test::run_json(with_files({"build", city, "--trajectory", poses, "--classes", classes()}));
    }
    std::string classes() const { return dir / "classes.toml"; }
    std::vector<std::string> with_files(std::vector<std::string> command) const {
        command.insert(command.end(), files.begin(), files.end());
        return command;
    }
    json keep_frames() const {
        return test::run_json(with_files({"snapshots", city, "--trajectory", poses}), {"frames"});
    }
    std::vector<std::string> drive(const std::string& out, const std::vector<std::string>& more) const {
        std::vector<std::string> all{"simulate", city,     "--sensor", "vlp-16", "--trajectory",
                                     poses,      "--from", "1000",     "--to",   "1000.85",
                                     "--noise",  "off",    "--out",    dir / out};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    /// Returns the name of the van.
    std::string build_bank() const {
        std::string csv = "time,id,class,x,y,z,yaw,length,width,height\n";
        const Track of_van = track(0);
        for (const auto& p : of_van.path.poses())
            csv += std::to_string(p.time_s) + ",7,Car," + std::to_string(p.world_from_body.translation.x) +
                   ",6,0,0,4.6,1.8,1.55\n";
        write(dir / "tracks.csv", csv);
        test::run_json(
            with_files({"bank", "build", dir / "bank", "--tracks", dir / "tracks.csv", "--trajectory", poses,
                        "--classes", classes(), "--source", "drive", "--scans"}));
        return test::run_json({"bank", "list", dir / "bank"})["objects"][0]["name"];
    }
};

/// The TOML block of a page that follows a comment.
std::string block_after(const fs::path& page, const std::string& comment) {
    const std::string text = read_text_file(page);
    const std::size_t from = text.find("```toml\n", text.find(comment)) + 8;
    return text.substr(from, text.find("```", from) - from);
}

}  // namespace

TEST_CASE("a city and the frames of what moved in it give back the van where it was seen") {
    const RecordedVan d;
    CHECK(d.keep_frames()["frames"] == 10);
    const json alone = test::run_json(d.drive("alone", {}));
    CHECK(alone["part_hits"] == 0);
    const json played = test::run_json(d.drive("played", {"--snapshots", d.city, "--format", "xyz"}),
                                       {"frames", "frames_loaded", "frames_resident", "parts_in_reach"});
    CHECK(played["frames"] == 10);
    CHECK(played["frames_loaded"] >= 9);
    CHECK(played["part_hits"] > 50);
    CHECK(played["digest"] != alone["digest"]);
    // Where the van was between the begin and the end of its frame, and no trail of it.
    for (int i = 0; i < 9; ++i) {
        char name[64];
        std::snprintf(name, sizeof name, "played/scans/%06d.xyz", i);
        std::ifstream in(d.dir / name);
        std::string line;
        std::getline(in, line);
        std::istringstream names(line);
        std::map<std::string, std::size_t> column;
        for (std::string word; names >> word;) column.emplace(word, column.size());
        REQUIRE(column.contains("label"));
        while (std::getline(in, line)) {
            std::istringstream values(line);
            std::vector<double> v{std::istream_iterator<double>(values), {}};
            if (v.at(column.at("label")) != 13) continue;
            const double from = d.pose_at(0.1 * i).translation.x - 2.5;
            const double to = d.pose_at(0.1 * (i + 1)).translation.x + 2.5;
            CHECK(v[0] > from);
            CHECK(v[0] < to);
        }
    }
    const auto digest = [&](const std::string& out, const std::vector<std::string>& more) {
        return test::run_json(d.drive(out, more))["digest"];
    };
    CHECK(digest("one", {"--snapshots", d.city, "--threads", "1"}) == played["digest"]);
    CHECK(digest("little", {"--snapshots", d.city + "/snapshots", "--resident", "4M"}) == played["digest"]);
    // The same by a scenario.
    write(d.dir / "s.toml",
          "trajectory = \"poses.txt\"\nfrom_s = 1000\nto_s = 1000.85\n[[sensor]]\nsensor = \"vlp-16\"\n"
          "noise = false\n[[snapshots]]\n");
    const json scenario =
        test::run_json({"simulate", d.city, "--scenario", d.dir / "s.toml", "--out", d.dir / "scenario"});
    CHECK(scenario["digest"] == played["digest"]);
    CHECK_THAT(read_text_file(d.dir / "scenario/objects.csv"), Catch::Contains(",1,,,city,,,"));
    const auto without_city =
        test::citysplat({"simulate", "--scenario", d.dir / "s.toml", "--out", d.dir / "nowhere"});
    CHECK(without_city.exit_code != 0);
    CHECK_THAT(without_city.err, Catch::Contains("[[snapshots]]"));
    // Real rays meet the frames, too: without them the van is missing.
    const auto rays = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"compare", "--city", d.city, "--trajectory", d.poses, "--rays"};
        all.insert(all.end(), d.files.begin(), d.files.end());
        all.insert(all.end(), more.begin(), more.end());
        return test::run_json(all);
    };
    const json with = rays({"--snapshots", d.city}), without = rays({});
    CHECK_FALSE(without.contains("moving"));
    CHECK(with["moving"]["real"] == with["classes"]["car"]["returns"]);
    CHECK(with["moving"]["ratio_median"].get<double>() == Approx(1).margin(0.15));
    CHECK(with["classes"]["car"]["within_5cm"] > 0.95);
    CHECK(without["classes"]["car"]["within_5cm"] < 0.5);
    // A damaged frame is named by its scan.
    for (const auto& entry : fs::directory_iterator(d.city + "/snapshots/splats")) {
        std::string bytes = read_text_file(entry.path());
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
        write(entry.path(), bytes);
    }
    const auto damaged = test::citysplat(d.drive("damaged", {"--snapshots", d.city, "--allow-missing"}));
    CHECK(damaged.exit_code != 0);
    CHECK_THAT(damaged.err, Catch::Contains("snapshot of") && Catch::Contains(".ply"));
}

TEST_CASE("an object of a bank stands in a scenario and is met") {
    const RecordedVan d;
    const std::string van = d.build_bank();
    write(d.dir / "s.toml", R"(
trajectory = "poses.txt"
from_s = 1000
to_s = 1000.2
[[sensor]]
sensor = "vlp-16"
noise = false
[[actor]]
name = "van"
object = "bank:bank#)" + van + R"("
class = "car"
place_m = [8.0, 3.0, 0.0]
)");
    const auto run = [&](const std::string& out) {
        return test::citysplat(
            {"--json", "simulate", d.city, "--scenario", d.dir / "s.toml", "--out", d.dir / out});
    };
    const auto first = run("named");
    INFO(first.err);
    const json named = json::parse(first.out);
    CHECK(named["actors"] == 1);
    CHECK(named["part_hits"] > 100);
    CHECK_THAT(read_text_file(d.dir / "named/objects.csv"), Catch::Contains("0,1,van,car," + van + ",4."));
    std::string toml = read_text_file(d.dir / "s.toml");
    toml.replace(toml.find("#" + van), van.size() + 1, "");
    write(d.dir / "s.toml", toml);
    CHECK(json::parse(run("chosen").out)["digest"] == named["digest"]);
    toml.replace(toml.find("\"car\""), 5, "\"bus\"");
    write(d.dir / "s.toml", toml);
    const auto none = run("none");
    CHECK(none.exit_code != 0);
    CHECK_THAT(none.err, Catch::Contains("no object of the class \"bus\"") && Catch::Contains("Car"));
}

TEST_CASE("the scenario of the documentation runs") {
    const test::TempDir dir;
    write(dir / "s.toml",
          block_after(fs::path(CITYSPLAT_SOURCE_DIR) / "docs/scenarios.md", "run by the tests"));
    write(dir / "ego.tum", "0 0 0 1.8 0 0 0 1\n1 5 0 1.8 0 0 0 1\n");
    write(dir / "tracks.csv",
          "time,id,class,x,y,z,yaw,length,width,height\n0,a,Car,10,-4,0,0,5,2,2\n1,a,Car,18,-4,0,0,5,2,2\n");
    const json result =
        test::run_json({"simulate", "--scenario", dir / "s.toml", "--out", dir / "out"}, {"digest"});
    CHECK(result["scans"] == 6);
    CHECK(result["part_hits"] == result["hits"]);
    CHECK(result["hits"] > 10'000);
    // What a run among moving things wrote is known to be ours.
    const json again = test::run_json(
        {"simulate", "--scenario", dir / "s.toml", "--out", dir / "out", "--overwrite"}, {"digest"});
    CHECK(again["digest"] == result["digest"]);
    CHECK_THAT(read_text_file(dir / "out/objects.csv"),
               Catch::Contains("a,car,car,5.000000,2.000000,2.000000"));
}

TEST_CASE("flags that a scenario would pass over are refused by name") {
    const test::TempDir dir;
    write(dir / "s.toml",
          "trajectory = \"ego.tum\"\n[[sensor]]\nsensor = \"vlp-16\"\n[[object]]\n"
          "name = \"a\"\nshape = \"cube\"\nsize_m = 1\n[[actor]]\nobject = \"a\"\nplace_m = "
          "[5, 0, 1]\n");
    write(dir / "ego.tum", "0 0 0 1.8 0 0 0 1\n1 5 0 1.8 0 0 0 1\n");
    const std::vector<std::vector<std::string>> flags{{"--trajectory", dir / "ego.tum"},
                                                      {"--sensor", "vlp-16"},
                                                      {"--model", "m.toml"},
                                                      {"--intensity-noise"},
                                                      {"--likely-drops"},
                                                      {"--returns", "first"},
                                                      {"--mount", "0,0,1"},
                                                      {"--mount-angles", "0,0,1"},
                                                      {"--offset", "0,0,1"},
                                                      {"--rate", "5"},
                                                      {"--from", "0"},
                                                      {"--to", "1"},
                                                      {"--hits", "1"},
                                                      {"--gap", "0.2"},
                                                      {"--noise", "off"},
                                                      {"--seed", "2"},
                                                      {"--format", "las"},
                                                      {"--frame", "world"},
                                                      {"--keep-misses"},
                                                      {"--recorded"},
                                                      {"--accumulate"},
                                                      {"--no-scans"}};
    for (const auto& flag : flags) {
        std::vector<std::string> command{"simulate", "--scenario", dir / "s.toml", "--out", dir / "out"};
        command.insert(command.end(), flag.begin(), flag.end());
        const auto outcome = test::citysplat(command);
        INFO(outcome.err);
        CHECK(outcome.exit_code == 2);
        CHECK_THAT(outcome.err, Catch::Contains(flag[0] + " has no meaning with --scenario"));
        CHECK_FALSE(fs::exists(dir / "out"));
    }
    const auto clearance =
        test::citysplat({"simulate", "--trajectory", dir / "ego.tum", "--out", dir / "out", "--clearance"});
    CHECK(clearance.exit_code == 2);
    CHECK_THAT(clearance.err, Catch::Contains("--clearance"));
    for (const std::vector<std::string>& flag :
         {std::vector<std::string>{"--time", "3"}, {"--offset", "0,0,1"}, {"--look-at", "1,0,0"}}) {
        std::vector<std::string> command{"render", "city", "--pose", "0,0,0", "--out", dir / "p.png"};
        command.insert(command.end(), flag.begin(), flag.end());
        const auto outcome = test::citysplat(command);
        CHECK(outcome.exit_code == 2);
        // --time belongs to one of two flags, which CLI11 cannot say.
        CHECK_THAT(outcome.err, Catch::Contains(flag[0] + (flag[0] == "--time" ? " needs" : " requires")));
    }
}
