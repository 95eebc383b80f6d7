#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/vec_hd.hpp"
#include "run_json.hpp"
#include "temp_dir.hpp"

#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

namespace test = citysplat::test;
namespace fs = std::filesystem;
using namespace citysplat;
using nlohmann::json;

namespace {

/// The rows of a text table whose first line names the columns.
class Table {
  public:
    Table(const fs::path& path, char separator) {
        std::istringstream in(read_text_file(path));
        std::string line;
        std::getline(in, line);
        for (const std::string& name : words(line, separator)) columns_.emplace(name, columns_.size());
        while (std::getline(in, line)) rows_.push_back(words(line, separator));
    }
    std::size_t size() const { return rows_.size(); }
    double number(std::size_t row, const std::string& column) const {
        return std::stod(rows_.at(row).at(columns_.at(column)));
    }

  private:
    static std::vector<std::string> words(const std::string& line, char separator) {
        std::istringstream in(line);
        std::vector<std::string> result;
        for (std::string word; std::getline(in, word, separator);) result.push_back(word);
        return result;
    }
    std::map<std::string, std::size_t> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// A street of synth in which cars drive and people walk, scanned by a HDL-64E: the city without them, and
/// the scans with labels, times and box files.
struct MadeStreet {
    test::TempDir dir{test::memory_directory()};
    std::string drive = dir / "drive", city = dir / "city", recorded = dir / "recorded";
    static constexpr int kScans = 12;

    MadeStreet() {
        test::run_json({"synth", drive, "--length", "60", "--seed", "3", "--actors", "--points-per-metre",
                        "4000", "--noise", "0", "--format", "ply"});
        test::run_json({"build", city, drive, "--trajectory", trajectory(), "--classes", "synthetic"});
        std::string scenario = read_text_file(drive + "/actors/scenario.toml");
        const std::size_t sensor = scenario.find("[[sensor]]");
        scenario.replace(sensor, scenario.find("[[object]]") - sensor,
                         "from_s = 302403.2\nto_s = 302404.35\n[[sensor]]\nsensor = \"hdl-64e\"\n"
                         "noise = false\nformat = \"ply\"\nframe = \"world\"\n");
        FileWriter out(drive + "/actors/hdl.toml");
        out.text(scenario);
        out.finish();
        test::run_json({"simulate", city, "--scenario", drive + "/actors/hdl.toml", "--out", recorded});
        test::run_json({"snapshots", city, recorded + "/scans", "--no-drive", "--trajectory", trajectory()});
    }
    std::string trajectory() const { return drive + "/trajectory.tum"; }

    /// The drive again with the frames, its sensor mounted elsewhere by so much.
    std::string play(const std::string& mount) const {
        const std::string out = dir / ("played" + mount);
        test::run_json({"simulate",   city,     "--sensor",         "hdl-64e",  "--trajectory",
                        trajectory(), "--from", "302403.2",         "--to",     "302404.35",
                        "--noise",    "off",    "--mount=" + mount, "--format", "xyz",
                        "--frame",    "world",  "--snapshots",      city,       "--out",
                        out});
        return out;
    }
};

bool moves(double label) { return label == 4 || label == 20; }

std::string scan_name(int scan, const char* ending) {
    char name[32];
    std::snprintf(name, sizeof name, "/%06d.%s", scan, ending);
    return name;
}

/// A point is in a box of the table, grown by 0.3 m.
bool in_some_box(const Table& boxes, Vec3d p) {
    constexpr double kGrown_m = 0.3;
    for (std::size_t b = 0; b < boxes.size(); ++b) {
        const auto of = [&](const char* column) { return boxes.number(b, column); };
        const auto turn = exact::sin_cos(of("yaw_rad"));
        const Vec3d d = p - Vec3d{of("x"), of("y"), of("z")};
        const double along = d.x * turn.cos + d.y * turn.sin, across = d.y * turn.cos - d.x * turn.sin;
        if (std::fabs(along) <= of("length") / 2 + kGrown_m &&
            std::fabs(across) <= of("width") / 2 + kGrown_m && d.z >= -kGrown_m &&
            d.z <= of("height") + kGrown_m)
            return true;
    }
    return false;
}

}  // namespace

TEST_CASE("recorded frames of a made street bring back as many returns as it had, where its things were") {
    const MadeStreet street;
    // At the same place, and where its rays pass between those that were recorded.
    for (const std::string mount : {"0,0,0", "0,0.1,0.08"}) {
        CAPTURE(mount);
        const std::string played = street.play(mount);
        double simulated = 0, outside = 0;
        for (int scan = 0; scan < MadeStreet::kScans; ++scan) {
            CAPTURE(scan);
            const Table boxes(street.recorded + "/boxes" + scan_name(scan, "csv"), ',');
            const Table points(played + "/scans" + scan_name(scan, "xyz"), ' ');
            double real_here = 0, simulated_here = 0;
            for (std::size_t b = 0; b < boxes.size(); ++b) real_here += boxes.number(b, "returns");
            for (std::size_t i = 0; i < points.size(); ++i) {
                if (!moves(points.number(i, "label"))) continue;
                ++simulated_here;
                outside += !in_some_box(
                    boxes, {points.number(i, "x"), points.number(i, "y"), points.number(i, "z")});
            }
            REQUIRE(real_here > 100);
            CHECK(simulated_here / real_here == Approx(1).margin(0.15));
            simulated += simulated_here;
        }
        CHECK(outside <= 0.005 * simulated);
    }
}
