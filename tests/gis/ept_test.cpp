#include "cli/small_city.hpp"
#include "gis/ept_tree.hpp"

#include <zstd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

using namespace citysplat;
namespace test = citysplat::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// An EPT as its specification says it is read, knowing nothing of who wrote it.
class Ept {
  public:
    using Point = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint32_t>;  // 2⁻¹³ m, intensity

    explicit Ept(const fs::path& folder)
        : folder_(folder), root_(json::parse(bytes_of(folder / "ept.json"))) {
        REQUIRE(root_["dataType"] == "zstandard");
        for (const auto& d : root_["schema"]) {
            offsets_[d["name"]] = bytes_;
            bytes_ += d["size"].get<std::size_t>();
        }
        visit("0-0-0-0", 0, 0, 0, 0, json::parse(bytes_of(folder / "ept-hierarchy/0-0-0-0.json")));
    }
    std::multiset<Point> points;
    std::set<std::string> nodes;
    std::size_t outside = 0, wrong_counts = 0;

  private:
    void visit(const std::string& name, int d, std::int64_t x, std::int64_t y, std::int64_t z,
               json hierarchy) {
        if (!hierarchy.contains(name)) return;
        if (hierarchy[name] == -1)
            hierarchy = json::parse(bytes_of(folder_ / "ept-hierarchy" / (name + ".json")));
        read(name, d, {x, y, z}, hierarchy[name].get<std::size_t>());
        for (int i = 0; i < 8; ++i) {
            const std::int64_t cx = 2 * x + (i & 1), cy = 2 * y + (i >> 1 & 1), cz = 2 * z + (i >> 2);
            visit(std::to_string(d + 1) + "-" + std::to_string(cx) + "-" + std::to_string(cy) + "-" +
                      std::to_string(cz),
                  d + 1, cx, cy, cz, hierarchy);
        }
    }
    void read(const std::string& name, int depth, const std::array<std::int64_t, 3>& cell,
              std::size_t count) {
        nodes.insert(name);
        const std::string packed = bytes_of(folder_ / "ept-data" / (name + ".zst"));
        std::string raw(count * bytes_, '\0');
        wrong_counts += ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size()) != raw.size();
        for (std::size_t i = 0; i < count; ++i) {
            std::array<double, 3> place;
            for (std::size_t a = 0; a < 3; ++a) {
                const json& d = root_["schema"][a];
                std::int32_t v;
                std::memcpy(&v, raw.data() + i * bytes_ + offsets_[d["name"]], sizeof v);
                place[a] = v * d["scale"].get<double>() + d["offset"].get<double>();
                const double low = root_["bounds"][a],
                             side = (root_["bounds"][a + 3].get<double>() - low) / std::ldexp(1.0, depth);
                outside += !(place[a] >= low + side * static_cast<double>(cell[a]) &&
                             place[a] < low + side * static_cast<double>(cell[a] + 1)) ||
                           place[a] < root_["boundsConforming"][a].get<double>() ||
                           place[a] > root_["boundsConforming"][a + 3].get<double>();
            }
            std::uint16_t intensity;
            std::memcpy(&intensity, raw.data() + i * bytes_ + offsets_["Intensity"], sizeof intensity);
            points.emplace(to_lattice(place[0]), to_lattice(place[1]), to_lattice(place[2]), intensity);
        }
    }
    fs::path folder_;
    json root_;
    std::map<std::string, std::size_t> offsets_;
    std::size_t bytes_ = 0;
};

/// The splats as the PLY export has them.
std::multiset<Ept::Point> splats_of(const std::string& city, const fs::path& ply) {
    test::run_json({"export", city, "--out", ply});
    const std::string all = bytes_of(ply);
    const std::size_t begin = all.find("end_header\n") + 11;
    const std::size_t count = std::stoull(all.substr(all.find("element vertex ") + 15)),
                      size = (all.size() - begin) / count;
    std::multiset<Ept::Point> points;
    for (std::size_t i = 0; i < count; ++i) {
        double p[3];
        std::uint16_t intensity;
        std::memcpy(p, all.data() + begin + i * size, sizeof p);
        std::memcpy(&intensity, all.data() + begin + i * size + 3 * 8 + 4 * 4 + 2, sizeof intensity);
        points.emplace(to_lattice(p[0]), to_lattice(p[1]), to_lattice(p[2]), intensity);
    }
    return points;
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) files[fs::relative(entry.path(), folder)] = bytes_of(entry.path());
    return files;
}

void write_blob(const fs::path& path, double x, double y, double z) {
    std::ofstream out(path);
    for (int i = 0; i < 900; ++i)
        out << x + (i % 30) * 0.05 << ' ' << y + (i / 30) * 0.05 << ' ' << z << '\n';
}

}  // namespace

TEST_CASE("every splat is in one node of the EPT, and a night rewrites dirty nodes and those above them") {
    const test::TempDir dir;
    const std::string city = dir / "city", ept = dir / "ept";
    // Nine patches of ground in sectors of their own, over 600 m.
    for (int i = 0; i < 9; ++i)
        write_blob(dir / ("p" + std::to_string(i) + ".xyz"), -310 + (i % 3) * 290, 6'000'000 + (i / 3) * 200,
                   i);
    std::vector<std::string> build{"build", city, "--no-resample"};
    for (int i = 0; i < 9; ++i) build.push_back(dir / ("p" + std::to_string(i) + ".xyz"));
    test::run_json(build);
    const json first = test::run_json({"export", city, "--format", "ept", "--out", ept});
    CHECK(first["updated"] == false);
    CHECK(first["sectors_made"] == first["sectors"]);
    {
        const Ept read(ept);
        CHECK(read.outside == 0);
        CHECK(read.wrong_counts == 0);
        REQUIRE(read.points.size() > 200);
        CHECK(read.points == splats_of(city, dir / "all.ply"));
        CHECK(read.nodes.size() == first["nodes_written"]);
    }
    const auto before = files_in(ept);

    // Nothing changed: nothing is written. One patch is another: its nodes and those above.
    CHECK(test::run_json({"export", city, "--format", "ept", "--out", ept})["nodes_written"] == 0);
    CHECK(files_in(ept) == before);
    write_blob(dir / "p4.xyz", -20.3, 6'000'200.1, 4.5);
    write_blob(dir / "new.xyz", -20.3, 6'000'205, 4.5);
    test::run_json({"build", city, dir / "p4.xyz", dir / "new.xyz"});
    const json second = test::run_json({"export", city, "--format", "ept", "--out", ept});
    CHECK(second["updated"] == true);
    CHECK(second["sectors_made"] < second["sectors"]);
    const Ept read(ept);
    CHECK(read.outside == 0);
    CHECK(read.wrong_counts == 0);
    CHECK(read.points == splats_of(city, dir / "all.ply"));
    const auto after = files_in(ept);
    std::size_t changed = 0, kept = 0;
    const json tiles = json::parse(after.at("citysplat.json"));
    const double low_x = tiles["min_m"][0], low_y = tiles["min_m"][1];
    const int leaf = tiles["leaf_depth"];
    for (const auto& [name, bytes] : after) {
        if (!name.starts_with("ept-data/")) continue;
        if (before.contains(name) && before.at(name) == bytes) {
            ++kept;
            continue;
        }
        ++changed;
        int d = 0;
        long long x = 0, y = 0;
        REQUIRE(std::sscanf(name.c_str(), "ept-data/%d-%lld-%lld", &d, &x, &y) == 3);
        const double side = std::ldexp(64.0, leaf - d);
        INFO(name);
        CHECK(low_x + static_cast<double>(x) * side <= -18);
        CHECK(low_x + static_cast<double>(x + 1) * side >= -21);
        CHECK(low_y + static_cast<double>(y) * side <= 6'000'208);
        CHECK(low_y + static_cast<double>(y + 1) * side >= 6'000'199);
    }
    CHECK(changed > 0);
    CHECK(kept > 8);

    // A first export of the new city has the same files.
    test::run_json({"export", city, "--format", "ept", "--out", dir / "fresh"});
    CHECK(files_in(dir / "fresh") == after);

    // A run that was stopped after the index forgot the dirty tiles is mended by the next.
    fs::remove(ept + "/ept-data/0-0-0-0.zst");
    json index = json::parse(after.at("citysplat.json"));
    fs::remove(fs::path(ept) / "ept-hierarchy/0-0-0-0.json");
    index["tiles"] = json::object();
    std::ofstream(ept + "/citysplat.json") << index.dump();
    test::run_json({"export", city, "--format", "ept", "--out", ept});
    auto mended = files_in(ept);
    CHECK(mended == after);

    // So is one that was stopped when a node had another number of points than the hierarchy says.
    index = json::parse(after.at("citysplat.json"));
    index["finished"] = false;
    std::ofstream(ept + "/citysplat.json") << index.dump();
    REQUIRE(before.at("ept-data/0-0-0-0.zst") != after.at("ept-data/0-0-0-0.zst"));
    std::ofstream(ept + "/ept-data/0-0-0-0.zst", std::ios::binary) << before.at("ept-data/0-0-0-0.zst");
    std::ofstream(ept + "/ept-data/13-0-0-0.zst") << "of a tile that is gone";
    CHECK(test::run_json({"export", city, "--format", "ept", "--out", ept})["updated"] == false);
    CHECK(files_in(ept) == after);

    // A run that was killed while it wrote its first index leaves a part of it.
    fs::create_directory(dir / "begun");
    std::ofstream(dir / "begun/citysplat.json.citysplat-partial") << "{";
    test::run_json({"export", city, "--format", "ept", "--out", dir / "begun"});
    CHECK(files_in(dir / "begun") == after);

    // A directory of somebody else stays as it is.
    fs::create_directory(dir / "other");
    std::ofstream(dir / "other/thing") << "x";
    const test::Outcome refused =
        test::citysplat({"export", city, "--format", "ept", "--out", dir / "other"});
    CHECK(refused.exit_code == 78);
    CHECK_THAT(refused.err, Catch::Contains("holds thing"));
}

TEST_CASE("which points are in a node follows from the points of each sector alone") {
    gis::EptCube cube;
    cube.min_x_m = -512, cube.min_y_m = 0, cube.min_z_m = -512, cube.leaf_depth = 4;
    std::vector<gis::EptPoint> points;
    for (std::uint64_t i = 0; i < 90'000; ++i) {
        gis::EptPoint p;
        const auto at = [&](std::uint64_t axis, double low, double high) {
            return to_lattice(rng::uniform(11 + axis, i, low, high));
        };
        p.place = {at(0, -512, -496), at(1, 64, 80), at(2, 60, 70)};  // across a border of cubes
        p.intensity = static_cast<std::uint16_t>(i);
        points.push_back(p);
    }
    const gis::EptNodes nodes = gis::ept_nodes(cube, points);
    std::size_t count = 0, deepest = 0, beyond = 0;
    for (const auto& [key, part] : nodes) {
        count += part.size();
        deepest = std::max(deepest, static_cast<std::size_t>(key.depth));
        for (const auto& p : part) {
            const std::int64_t side = cube.side_m() * kLatticePerMetre >> key.depth;
            beyond += (p.place.x + 512 * kLatticePerMetre) / side != key.x || p.place.y / side != key.y ||
                      (p.place.z + 512 * kLatticePerMetre) / side != key.z;
        }
        if (key.depth > 0) CHECK(nodes.contains({key.depth - 1, key.x / 2, key.y / 2, key.z / 2}));
    }
    CHECK(count == points.size());
    CHECK(beyond == 0);
    CHECK(deepest > 4);
    std::reverse(points.begin(), points.end());
    const gis::EptNodes again = gis::ept_nodes(cube, points);
    REQUIRE(again.size() == nodes.size());
    for (const auto& [key, part] : nodes) CHECK(again.at(key).size() == part.size());
}

TEST_CASE("no cube of an EPT is wider than its 32-bit coordinates") {
    const gis::EptCube widest = gis::ept_cube_around({-262'144, -10, 0, 262'143, 10, 50});
    CHECK(widest.leaf_depth == gis::kEptMostLeafDepth);
    CHECK(widest.side_m() * kLatticePerMetre == std::int64_t{1} << 32);
    // A splat far from all others.
    CHECK_THROWS_WITH(gis::ept_cube_around({0, 0, 0, 600'000, 10, 50}), Catch::Contains("524 km"));
}
