#include "small_city.hpp"

#include <map>
#include <sstream>

namespace test = citysplat::test;
namespace fs = std::filesystem;
using test::Outcome;
using test::SmallCity;

/// No verb removes a byte that it did not write.
namespace {

std::string content_of(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

/// Files of somebody else, with names that look like everything a city has.
class ForeignFiles {
  public:
    void plant(const fs::path& directory) {
        fs::create_directories(directory);
        for (const char* name :
             {"thesis.txt", ".hidden", "abcdef0123456789abcdef0123456789", "00000000000000000000000000000000",
              "4711-140000-0", "spill-4711-0", "catalog.sqlite.tmp-4711", "catalog.sqlite.old", "mine.tmp",
              "1-of-2.txt", "000007.txt", "notes/inside.txt", "ab/abcdef0123456789abcdef0123456789"})
            put(directory / name);
    }
    void put(const fs::path& path) {
        fs::create_directories(path.parent_path());
        const std::string content = "precious " + std::to_string(files_.size());
        std::ofstream(path) << content;
        files_[path] = content;
    }

    /// Blames a command for what is gone or changed, once.
    void check(const std::string& after) {
        std::string lost;
        std::erase_if(files_, [&lost](const auto& file) {
            const bool same = fs::exists(file.first) && content_of(file.first) == file.second;
            if (!same) lost += "\n" + file.first.string();
            return !same;
        });
        if (!lost.empty()) FAIL_CHECK(after << " removed or changed" << lost);
    }
    std::size_t size() const { return files_.size(); }

  private:
    std::map<fs::path, std::string> files_;
};

struct ForeignCity : SmallCity {
    ForeignFiles foreign;
    ForeignCity() {
        foreign.put(dir / "thesis.txt");
        foreign.put(dir / ".hidden");
        for (const char* directory : {"", "objects", "objects/ab", "objects/00", "tmp", "plans", "damaged"})
            foreign.plant(fs::path(city) / directory);
    }

    Outcome run(std::vector<std::string> words, int exit_code) {
        std::string line = "citysplat";
        for (const auto& word : words) line += " " + word;
        const Outcome outcome = test::citysplat(std::move(words));
        CAPTURE(line, outcome.err);
        CHECK(outcome.exit_code == exit_code);
        foreign.check(line);
        return outcome;
    }
    void build(const std::string& tile_size_m, const std::vector<std::string>& more, int exit_code) {
        auto words = build_command();
        words.back() = tile_size_m;
        words.insert(words.end(), more.begin(), more.end());
        run(std::move(words), exit_code);
    }
};

}  // namespace

TEST_CASE("building, publishing and looking after a city leaves the files of others alone") {
    ForeignCity c;
    REQUIRE(c.foreign.size() > 80);
    c.damage();
    c.run({"verify", c.city, "--deep"}, 65);
    c.build("32", {}, 0);
    c.build("16", {}, 0);
    c.build("8", {"--dry-run"}, 0);
    c.build("16", {"--params", c.dir / "nowhere.toml"}, 74);
    c.build("16", {c.dir / "nowhere.las"}, 74);
    auto plan = c.build_command();
    plan.front() = "plan";
    plan.back() = "32";
    c.run(plan, 0);
    c.run({"publish", c.city}, 75);
    c.run({"work", c.city}, 0);
    c.build("8", {"--shard", "2/2"}, 0);  // another plan
    c.build("8", {"--shard", "1/2"}, 0);
    c.run({"publish", c.city}, 0);
    c.run({"publish", c.city}, 0);
    c.run({"plan", c.city, "--discard"}, 0);
    c.run({"status", c.city, "--history"}, 0);
    c.run({"verify", c.city}, 0);
    c.run({"verify", c.city, "--deep"}, 0);
    c.run({"rollback", c.city}, 0);
    c.run({"rollback", c.city, "99"}, 2);
    c.run({"repair", c.city}, 0);
    fs::remove(c.city + "/catalog.sqlite");
    c.run({"status", c.city}, 78);
    c.run({"repair", c.city}, 0);
    c.build("8", {}, 0);
}

TEST_CASE("gc removes what nothing needs and says that there are files of others") {
    ForeignCity c;
    c.build("16", {}, 0);
    c.run({"gc", c.city, "--keep", "1", "--dry-run"}, 0);
    const Outcome collected = c.run({"gc", c.city, "--keep", "1"}, 0);
    CHECK_THAT(collected.err + collected.out, Catch::Contains("4 files") && Catch::Contains("left alone"));
    c.run({"gc", c.city, "--keep", "1"}, 0);
    c.run({"verify", c.city, "--deep"}, 0);
}

TEST_CASE("what is written out of a city stands beside the files of others") {
    ForeignCity c;
    const std::string out = c.dir / "out";
    c.foreign.plant(out);
    c.foreign.plant(out + "/velodyne");
    c.run({"simulate", c.city, "--trajectory", c.trajectory, "--sensor", "vlp-16", "--out", out}, 0);
    c.run({"info", out + "/velodyne/000000.bin"}, 0);
    c.run({"compare", out + "/velodyne/000000.bin", "--reference", c.city}, 0);
    c.run({"simulate", c.city, "--trajectory", c.trajectory, "--sensor", "nowhere.toml", "--out", out}, 78);
    for (const std::string format : {"ply", "las", "2dgs", "glb"})
        c.run({"export", c.city, "--format", format, "--out", out + "/splats." + format}, 0);
    c.run({"export", c.city, "--format", "3dtiles", "--out", out}, 0);
    c.run({"render", c.city, "--along", c.trajectory, "--size", "64x48", "--out", out + "/view.png"}, 0);
    c.run({"pack", c.city, out + "/city.pack"}, 0);
    c.run({"export", c.city, "--out", out + "/nodir/splats.ply"}, 74);
    c.run({"render", c.city, "--along", c.trajectory, "--out", out + "/nodir/view.png"}, 74);
    c.run({"pack", c.city, out + "/nodir/city.pack"}, 2);
    c.damage();
    c.run({"pack", c.city, out + "/damaged.pack"}, 65);
    c.run({"export", c.city, "--out", out + "/damaged.ply"}, 65);
    CHECK_FALSE(fs::exists(out + "/damaged.pack"));
}

TEST_CASE("a directory with the files of others is not made a city, nor emptied") {
    ForeignCity c;
    const std::string pack = c.dir / "city.pack", torn = c.dir / "torn.pack";
    c.run({"pack", c.city, pack}, 0);
    fs::copy_file(pack, torn);
    fs::resize_file(torn, fs::file_size(torn) - 100);
    const std::string project = c.dir / "project", store = c.dir / "store";
    c.foreign.put(project + "/tmp/thesis.txt");
    c.foreign.put(project + "/thesis.txt");
    c.foreign.plant(store + "/objects/ab");
    c.foreign.plant(store + "/tmp");
    for (const std::string& directory : {project, store, c.city}) {
        c.run({"unpack", pack, directory}, 2);
        c.run({"unpack", torn, directory}, 2);
    }
    for (const std::string& directory : {project, store}) {
        CHECK(c.run({"repair", directory}, 78).out.empty());
        c.run({"build", directory, c.drive, "--classes", "synthetic"}, 2);
        c.run({"synth", directory, "--length", "5"}, 2);
        for (const std::string verb : {"status", "verify", "gc", "rollback", "publish"})
            c.run({verb, directory}, 78);
    }
    c.run({"unpack", torn, c.dir / "new"}, 65);
    c.run({"unpack", pack, c.dir / "whole"}, 0);
    c.run({"verify", c.dir / "whole", "--deep"}, 0);
}
