#include "cli/small_city.hpp"
#include "io/las_image.hpp"

#include <sqlite3.h>

#include <fstream>
#include <unistd.h>

namespace test = citysplat::test;
using nlohmann::json;

namespace {

/// A file read with SQLite alone.
class Reader {
  public:
    explicit Reader(const std::filesystem::path& path) {
        REQUIRE(sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
    }
    ~Reader() { sqlite3_close(db_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Rows of texts, as SQLite writes them; blobs as their bytes.
    std::vector<std::vector<std::string>> rows(const std::string& sql) const {
        sqlite3_stmt* statement = nullptr;
        INFO(sql << ": " << sqlite3_errmsg(db_));
        REQUIRE(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
        std::vector<std::vector<std::string>> all;
        while (sqlite3_step(statement) == SQLITE_ROW) {
            auto& row = all.emplace_back();
            for (int i = 0; i < sqlite3_column_count(statement); ++i) {
                const void* bytes = sqlite3_column_blob(statement, i);
                const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
                row.emplace_back(static_cast<const char*>(bytes), bytes ? size : 0);
            }
        }
        sqlite3_finalize(statement);
        return all;
    }
    std::int64_t number(const std::string& sql) const { return std::stoll(rows(sql).at(0).at(0)); }

  private:
    sqlite3* db_ = nullptr;
};

template <class T>
T at(const std::string& bytes, std::size_t offset) {
    T value;
    REQUIRE(offset + sizeof value <= bytes.size());
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

}  // namespace

TEST_CASE("a GeoPackage has the rows of the catalog, geometries where the tiles are, and styles") {
    const test::SmallCity small;
    const auto file = small.dir / "city.gpkg";
    const json first = test::run_json({"export", small.city, "--format", "gpkg", "--out", file});
    CHECK(first["changes_from"].is_null());
    CHECK(first["layers"]["tile_changes"] == 0);

    // A second generation, in which few tiles are others.
    std::ofstream(small.dir / "more.xyz") << [] {
        std::string text;
        for (int i = 0; i < 400; ++i)
            text += std::to_string(2 + (i % 20) * 0.05) + " " + std::to_string(2 + (i / 20) * 0.05) + " 30\n";
        return text + "500 500 30\n";  // of which there is no splat
    }();
    const std::string none = test::las_image(2, 1, 0).write(small.dir / "none.las").string();
    const json built = test::run_json({"build", small.city, small.dir / "more.xyz", none});
    REQUIRE(built["generation"] == 2);
    const json status = test::run_json({"status", small.city});
    const json diff = test::run_json({"diff", small.city});
    const json made = test::run_json({"export", small.city, "--format", "gpkg", "--out", file});
    CHECK(made["changes_from"] == 1);
    const Reader gpkg(file);
    CHECK(gpkg.number("PRAGMA application_id") == 0x47504b47);
    CHECK(gpkg.number("PRAGMA user_version") == 10300);
    CHECK(gpkg.rows("PRAGMA integrity_check").at(0).at(0) == "ok");
    CHECK(gpkg.rows("PRAGMA foreign_key_check").empty());

    const Reader catalog(small.city + "/catalog.sqlite");
    const std::string tiles_now =
        " FROM tile t JOIN product p ON p.id = t.product WHERE t.first <= 2 AND "
        "(t.last IS NULL OR t.last >= 2)";
    CHECK(gpkg.number("SELECT count(*) FROM tiles") == catalog.number("SELECT count(*)" + tiles_now));
    CHECK(gpkg.number("SELECT sum(splats) FROM tiles") == status["splats"].get<std::int64_t>());
    CHECK(gpkg.number("SELECT sum(points) FROM tiles") == catalog.number("SELECT sum(p.points)" + tiles_now));
    CHECK(gpkg.number("SELECT count(*) FROM inputs") == catalog.number("SELECT count(*) FROM input"));
    CHECK(gpkg.number("SELECT sum(points_kept) FROM inputs") ==
          catalog.number("SELECT sum(kept) FROM source"));
    CHECK(gpkg.number("SELECT count(*) FROM tiles WHERE splats = 0") > 0);
    CHECK(gpkg.number("SELECT count(*) FROM tiles WHERE (splats = 0) != (min_z_m IS NULL)") == 0);
    CHECK(gpkg.number("SELECT count(*) FROM tiles WHERE (splats = 0) != (max_z_m IS NULL)") == 0);
    // What has no points lies nowhere, and not at the zero of the coordinates.
    CHECK(gpkg.rows("SELECT path FROM inputs WHERE geom IS NULL") ==
          std::vector<std::vector<std::string>>{{none}});
    CHECK(gpkg.number("SELECT count(*) FROM trajectories") == 1);
    CHECK(gpkg.rows("SELECT path FROM trajectories").at(0).at(0) == small.trajectory);
    const std::int64_t changed = diff["tiles"]["added"].get<std::int64_t>() +
                                 diff["tiles"]["changed"].get<std::int64_t>() +
                                 diff["tiles"]["removed"].get<std::int64_t>();
    REQUIRE(changed > 0);
    CHECK(gpkg.number("SELECT count(*) FROM tile_changes") == changed);
    CHECK(gpkg.number("SELECT count(*) FROM tiles WHERE since_generation = 2") ==
          diff["tiles"]["added"].get<std::int64_t>() + diff["tiles"]["changed"].get<std::int64_t>());
    CHECK(gpkg.number("SELECT count(*) FROM tiles WHERE since_generation = 1") ==
          diff["tiles"]["same"].get<std::int64_t>());

    // Header with the extent, then well-known binary of the five corners.
    for (const auto& row : gpkg.rows("SELECT geom, tile FROM tiles")) {
        const std::string& g = row[0];
        REQUIRE(g.size() == 8 + 32 + 1 + 12 + 5 * 16);
        CHECK(g.substr(0, 2) == "GP");
        int level = 0, x = 0, y = 0;
        REQUIRE(std::sscanf(row[1].c_str(), "%d/%d/%d", &level, &x, &y) == 3);
        const double side = 32.0 / (1 << level);
        CHECK(at<double>(g, 8) == x * side);
        CHECK(at<double>(g, 16) == (x + 1) * side);
        CHECK(at<double>(g, 24) == y * side);
        CHECK(at<double>(g, 32) == (y + 1) * side);
        CHECK(at<std::uint32_t>(g, 41) == 3);  // a polygon
        CHECK(at<double>(g, 53 + 2 * 16) == (x + 1) * side);
        CHECK(at<double>(g, 53 + 2 * 16 + 8) == (y + 1) * side);
    }
    for (const char* layer : {"tiles", "inputs", "trajectories", "tile_changes", "changes"}) {
        const std::string name = std::string("'") + layer + "'";
        CHECK(gpkg.number("SELECT count(*) FROM gpkg_contents WHERE table_name = " + name) == 1);
        CHECK(gpkg.number("SELECT count(*) FROM gpkg_geometry_columns WHERE table_name = " + name) == 1);
        CHECK(gpkg.number(
                  "SELECT count(*) FROM layer_styles WHERE useAsDefault AND styleQML LIKE '%renderer-v2%' "
                  "AND f_table_name = " +
                  name) == 1);
    }

    // The same catalog, the same bytes; a trajectory that is gone is said and left out.
    const auto bytes = [](const std::filesystem::path& path) {
        std::ifstream in(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    test::run_json({"export", small.city, "--format", "gpkg", "--out", small.dir / "again.gpkg"});
    CHECK(bytes(file) == bytes(small.dir / "again.gpkg"));
    std::filesystem::rename(small.trajectory, small.trajectory + ".away");
    const json without = test::run_json({"export", small.city, "--format", "gpkg", "--out", file});
    CHECK(without["layers"]["trajectories"] == 0);
    REQUIRE(without["warnings"].size() == 1);
    CHECK_THAT(without["warnings"][0].get<std::string>(), Catch::Contains("trajectory.tum"));
    const test::Outcome refused = test::citysplat({"export", small.city, "--out", file, "--surfaces"});
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Catch::Contains("--surfaces belongs to --format gpkg"));
}

TEST_CASE("GDAL opens the GeoPackage, the pictures and their mosaic", "[slow]") {
    if (::access("/usr/bin/ogrinfo", X_OK) != 0 || ::access("/usr/bin/gdalinfo", X_OK) != 0) {
        WARN("gdal-bin is not installed: not tried");
        return;
    }
    const test::TempDir dir;
    const std::string drive = dir / "drive", city = dir / "city", file = dir / "city.gpkg";
    test::run_json({"synth", drive, "--length", "16", "--points-per-metre", "3000", "--seed", "5", "--origin",
                    "650000,6860000,0"});
    test::run_json({"build", city, drive, "--trajectory", drive + "/trajectory.tum", "--classes", "synthetic",
                    "--tile-size", "32", "--crs", "EPSG:2154"});
    const json made = test::run_json({"export", city, "--format", "gpkg", "--out", file});
    const test::Outcome told = test::run_program({"/usr/bin/ogrinfo", "-al", "-so", "-ro", file});
    INFO(told.out << told.err);
    REQUIRE(told.exit_code == 0);
    CHECK(told.err.empty());
    for (const auto& [layer, count] : made["layers"].items()) {
        const std::size_t begin = told.out.find("Layer name: " + layer + "\n");
        REQUIRE(begin != std::string::npos);
        CHECK(told.out.find("Feature Count: " + std::to_string(count.get<int>()) + "\n", begin) <
              told.out.find("Layer SRS WKT", begin));
        CHECK(told.out.find("RGF93", begin) != std::string::npos);
    }
    test::run_json({"render", city, "--ortho", "--resolution", "0.1", "--per-tile", "--out", dir / "maps"});
    const test::Outcome mosaic = test::run_program({"/usr/bin/gdalinfo", dir / "maps/mosaic.vrt"});
    INFO(mosaic.out << mosaic.err);
    CHECK(mosaic.exit_code == 0);
    CHECK(mosaic.err.empty());
    CHECK(mosaic.out.find("RGF93") != std::string::npos);
    CHECK(mosaic.out.find("Pixel Size = (0.1") != std::string::npos);
    CHECK(mosaic.out.find("Alpha") != std::string::npos);
}
