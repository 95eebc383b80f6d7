#include "small_city.hpp"
#include "stopped_program.hpp"

#include <csignal>
#include <map>

namespace test = citysplat::test;
namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::TempDir;

namespace {

/// Regular files below a directory with their content.
std::map<std::string, std::string> files_below(const fs::path& directory) {
    std::map<std::string, std::string> files;
    if (!fs::exists(directory)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        if (!entry.is_regular_file()) continue;
        std::ifstream in(entry.path(), std::ios::binary);
        files[fs::relative(entry.path(), directory)] =
            std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return files;
}

bool has_partial(const fs::path& directory) {
    for (const auto& [name, content] : files_below(directory))
        if (name.find("citysplat-partial") != std::string::npos) return true;
    return false;
}

struct Runs : test::SmallCity {
    std::vector<std::string> simulate(const std::string& out,
                                      const std::vector<std::string>& more = {}) const {
        std::vector<std::string> all{"simulate",     city,       "--sensor", "vlp-16",
                                     "--trajectory", trajectory, "--out",    dir / out};
        if (std::find(more.begin(), more.end(), "--rate") == more.end())
            all.insert(all.end(), {"--rate", "4"});
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    /// With files of at most that many blocks of 512 bytes, as on a disk that is full.
    Outcome cramped(const std::string& blocks, const std::vector<std::string>& arguments) const {
        std::string command = "ulimit -f " + blocks + "; exec \"$0\" \"$@\"";
        std::vector<std::string> all{"sh", "-c", command, test::program()};
        all.insert(all.end(), arguments.begin(), arguments.end());
        return test::run_program(all);
    }
    /// With a disk below `directory` that is full from that write on; never when `at` is 0. Returns also how
    /// many operations there were.
    std::pair<Outcome, long> on_full_disk(const fs::path& directory, long at,
                                          const std::vector<std::string>& arguments) const {
        const fs::path log = dir / "operations";
        std::vector<std::string> all{"env",
                                     std::string("LD_PRELOAD=") + CITYSPLAT_FAULT_SHIM,
                                     "ASAN_OPTIONS=verify_asan_link_order=0",
                                     "FAULT_DIR=" + directory.string(),
                                     std::string("FAULT_KIND=") + (at == 0 ? "count" : "enospc"),
                                     "FAULT_AT=" + std::to_string(at),
                                     "FAULT_LOG=" + log.string(),
                                     test::program()};
        all.insert(all.end(), arguments.begin(), arguments.end());
        const Outcome outcome = test::run_program(all);
        long operations = 0;
        std::ifstream(log) >> operations;
        return {outcome, operations};
    }
};

}  // namespace

TEST_CASE("scans of another run are replaced only when asked, and nothing else ever") {
    const Runs c;
    const json first = test::run_json(c.simulate("scans"));
    const auto files = files_below(c.dir / "scans");
    std::ofstream(c.dir / "scans/notes.txt") << "mine";
    std::ofstream(c.dir / "scans/velodyne/notes.txt") << "mine";

    const Outcome refused = test::citysplat(c.simulate("scans"));
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Catch::Contains("--overwrite"));
    auto now = files_below(c.dir / "scans");
    CHECK(now.erase("notes.txt") + now.erase("velodyne/notes.txt") == 2);
    CHECK(now == files);

    // A shorter run in another format: nothing of the first remains, and all of what is not ours.
    const json second =
        test::run_json(c.simulate("scans", {"--overwrite", "--format", "las", "--rate", "1"}));
    REQUIRE(second["scans"] < first["scans"]);
    now = files_below(c.dir / "scans");
    CHECK(now.erase("notes.txt") + now.erase("velodyne/notes.txt") == 2);
    CHECK(now.size() == second["scans"].get<std::size_t>() + 3);  // poses, times, run.toml
    CHECK(now.contains("scans/000000.las"));
    CHECK_FALSE(now.contains("calib.txt"));
}

TEST_CASE("a directory with scans that are not of a run is left alone") {
    const Runs c;
    const auto refuses = [&](const std::string& name, const std::string& content) {
        INFO(name);
        const fs::path directory = c.dir / "real";
        fs::remove_all(directory);
        fs::create_directories((directory / name).parent_path());
        std::ofstream(directory / name) << content;
        const auto before = files_below(directory);
        const Outcome outcome = test::citysplat(c.simulate("real", {"--overwrite"}));
        CHECK(outcome.exit_code == 2);
        CHECK_THAT(outcome.err, Catch::Contains(name));
        CHECK(files_below(directory) == before);
    };
    refuses("velodyne/000000.bin", "a real scan");
    refuses("velodyne/0000000005.bin", "a real scan");
    refuses("scans/000007.las", "somebody's");
    refuses("poses.txt", "real poses");
    refuses("run.toml", "kind = \"marathon\"\n");
    refuses("run.toml", "kind = \"citysplat run\"\nscans = 3\nparts = [\"../*.las\"]\nfiles = []\n");
    refuses("run.toml",
            "kind = \"citysplat run\"\nscans = 3\nparts = []\nfiles = [\"../drive/truth.json\"]\n");
}

TEST_CASE("a run that fails leaves whole scans only, and the next one takes its place") {
    const Runs c;
    test::run_json(c.simulate("good", {"--accumulate"}));
    const auto good = files_below(c.dir / "good");

    // Scans fit, the cloud of all of them does not.
    const Outcome failed = c.cramped("1500", c.simulate("scans", {"--accumulate", "-q"}));
    INFO(failed.err);
    CHECK(failed.exit_code == 74);
    CHECK_FALSE(has_partial(c.dir / "scans"));
    const auto left = files_below(c.dir / "scans");
    CHECK_FALSE(left.contains("cloud.ply"));
    CHECK_FALSE(left.contains("poses.txt"));
    for (const auto& [name, content] : left)
        if (name != "run.toml") CHECK(content == good.at(name));
    CHECK(test::citysplat(c.simulate("scans", {"--accumulate"})).exit_code == 0);
    CHECK(files_below(c.dir / "scans") == good);

    // Not even a scan fits.
    CHECK(c.cramped("20", c.simulate("tiny", {"-q"})).exit_code == 74);
    for (const auto& [name, content] : files_below(c.dir / "tiny")) CHECK(name == "run.toml");
}

TEST_CASE(
    "a disk that fills up under a simulation is said, leaves whole scans, and the next run completes it") {
    const Runs c;
    const auto [whole, operations] = c.on_full_disk(c.dir / "good", 0, c.simulate("good", {"--accumulate"}));
    REQUIRE(whole.exit_code == 0);
    REQUIRE(operations > 20);
    const auto good = files_below(c.dir / "good");
    constexpr long kPositions = 6;
    for (long i = 0; i < kPositions; ++i) {
        const long at = 1 + operations * i / kPositions;
        INFO("disk full from operation " << at << " of " << operations);
        const fs::path scans = c.dir / "scans";
        const Outcome failed = c.on_full_disk(scans, at, c.simulate("scans", {"--accumulate"})).first;
        INFO(failed.err);
        CHECK(failed.exit_code == 74);
        CHECK_THAT(failed.err, Catch::Contains("No space left"));
        CHECK_FALSE(has_partial(scans));
        for (const auto& [name, content] : files_below(scans))
            if (name != "run.toml") CHECK(content == good.at(name));
        CHECK(test::citysplat(c.simulate("scans", {"--accumulate"})).exit_code == 0);
        CHECK(files_below(scans) == good);
        fs::remove_all(scans);
    }
}

TEST_CASE("a killed run leaves whole scans and remainders that the next one removes") {
    const Runs c;
    const auto command = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"simulate",   c.city,  "--sensor",      "hdl-64e",     "--trajectory",
                                     c.trajectory, "--out", c.dir / "scans", "--accumulate"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const Outcome killed = test::stopped_citysplat(
        command({"--rate", "100"}), {SIGKILL, c.dir / "scans/velodyne/000000.bin", c.dir / "scans"});
    CHECK(killed.exit_code == 128 + SIGKILL);
    CHECK_FALSE(fs::exists(c.dir / "scans/poses.txt"));
    CHECK_FALSE(fs::exists(c.dir / "scans/cloud.ply"));
    CHECK(has_partial(c.dir / "scans"));
    const json next = test::run_json(command({"--rate", "2"}));
    CHECK_FALSE(has_partial(c.dir / "scans"));
    CHECK(test::run_json({"info", c.dir / "scans"})["points"] == next["hits"]);
}

TEST_CASE("export and render never damage a file that was there") {
    const Runs c;
    const std::string ply = c.dir / "city.ply", png = c.dir / "city.png";
    const std::vector<std::string> exporting{"export", c.city, "--out", ply},
        rendering{"render", c.city, "--along", c.trajectory, "--size", "640x480", "--out", png};
    test::run_json(exporting);
    test::run_json(rendering);
    const auto before = files_below(c.dir.path());
    CHECK(c.cramped("100", exporting).exit_code == 74);
    CHECK(c.cramped("20", rendering).exit_code == 74);
    CHECK(files_below(c.dir.path()) == before);
    // A remainder of a killed run goes, a symbolic link stays one.
    std::ofstream(ply + ".citysplat-partial") << "half a city";
    test::run_json(exporting);
    CHECK(files_below(c.dir.path()) == before);
    fs::rename(ply, c.dir / "real.ply");
    fs::create_symlink("real.ply", ply);
    test::run_json(exporting);
    CHECK_FALSE(has_partial(c.dir.path()));
    CHECK(fs::is_symlink(ply));
    CHECK(files_below(c.dir.path()).at("real.ply") == before.at("city.ply"));
}

TEST_CASE("no output replaces a file that makes a city, or a cloud that is compared") {
    const Runs c;
    const std::string cloud = c.dir / "copy.las";
    fs::copy_file(c.drive + "/cloud_000.las", cloud);
    const auto before = files_below(c.dir.path());
    const auto refused = [&](const std::vector<std::string>& arguments) {
        INFO(arguments[0]);
        const Outcome outcome = test::citysplat(arguments);
        CHECK(outcome.exit_code == 2);
        CHECK_THAT(outcome.err, Catch::Contains("give another name"));
        CHECK(files_below(c.dir.path()) == before);
    };
    for (const char* file :
         {"/catalog.sqlite", "/lock", "/objects/ab/picture.ply", "/plans/../catalog.sqlite"})
        refused({"export", c.city, "--out", c.city + file});
    refused({"compare", cloud, "--reference", c.city, "--distances", cloud});
    refused({"compare", c.drive + "/cloud_000.las", "--reference", cloud, "--distances", cloud});
    refused({"compare", cloud, "--reference", c.city, "--distances", c.city + "/catalog.sqlite"});
}

TEST_CASE("a simulation that meets nothing, or is mostly outside the city, says how far off it is") {
    const Runs c;
    CHECK(test::run_json(c.simulate("inside"))["warnings"].empty());
    const Outcome far =
        test::citysplat(c.simulate("far", {"--trajectory-offset", "5000", "0", "0", "--json", "-q"}));
    CHECK(far.exit_code == 0);
    const json result = json::parse(far.out);
    CHECK(result["hits"] == 0);
    CHECK(result["scans_outside"] == result["scans"]);
    REQUIRE(result["warnings"].size() == 2);
    CHECK_THAT(result["warnings"][0].get<std::string>(),
               Catch::Contains("outside the city") && Catch::Contains("m from the sensor's path"));
    CHECK_THAT(result["warnings"][1].get<std::string>(), Catch::Contains("not one of"));
    CHECK_THAT(far.err, Catch::Contains("warning: vlp-16: "));

    std::ofstream(c.dir / "down.toml")
        << "name = \"c\"\nkind = \"pinhole\"\nscan_hz = 2\n[range]\nmax_m = 0.01\n[pinhole]\ncolumns = 8\n"
           "rows = 6\nhorizontal_deg = 60\nvertical_deg = 40\n";
    const json blind = test::run_json({"simulate", c.city, "--sensor", c.dir / "down.toml", "--trajectory",
                                       c.trajectory, "--out", c.dir / "blind"});
    CHECK(blind["hits"] == 0);
    CHECK_THAT(blind["warnings"].dump(), Catch::Contains("not one of"));
}

TEST_CASE("build says which points it left out") {
    const TempDir dir;
    std::ofstream cloud(dir / "a.xyz");
    for (int i = 0; i < 1000; ++i)
        for (int copies = 0; copies <= i % 2; ++copies)
            cloud << i % 40 * 0.1 << " " << i / 40 * 0.1 << " 0\n";
    cloud.close();
    const Outcome built = test::citysplat({"build", dir / "city", dir / "a.xyz", "-q"});
    INFO(built.err);
    CHECK(built.exit_code == 0);
    CHECK_THAT(built.out, Catch::Contains("left out: 500 duplicates (of 1 500 points)"));
}

TEST_CASE("a synthetic drive is replaced only when asked, and exactly that drive") {
    const TempDir dir;
    const std::string drive = dir / "drive";
    const auto synth = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"synth", drive, "--length", "5", "--points-per-metre", "100", "-q"};
        all.insert(all.end(), more.begin(), more.end());
        return test::citysplat(all);
    };
    REQUIRE(synth({"--files", "3"}).exit_code == 0);
    std::ofstream(drive + "/notes.txt") << "mine";
    const auto before = files_below(drive);
    const Outcome refused = synth({"--seed", "9"});
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Catch::Contains("--overwrite"));
    CHECK(files_below(drive) == before);
    CHECK(synth({"--seed", "9", "--overwrite"}).exit_code == 0);
    CHECK(fs::exists(drive + "/notes.txt"));
    CHECK_FALSE(fs::exists(drive + "/cloud_002.las"));
}

TEST_CASE("sensors are found in upper and lower case") {
    CHECK(test::citysplat({"sensors", "HDL-64E"}).out == test::citysplat({"sensors", "hdl-64e"}).out);
    CHECK(test::citysplat({"sensors", "HDL-64E"}).exit_code == 0);
}
