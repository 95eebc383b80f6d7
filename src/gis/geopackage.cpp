#include "gis/geopackage.hpp"

#include "io/crs/known_crs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <unistd.h>

namespace citysplat::gis {

namespace {

using tiling::Database;
using tiling::Statement;

constexpr std::int64_t kApplicationId = 0x47504b47;  // "GPKG"
constexpr int kVersion = 10300;
/// Of a system without a code of its own: the standard leaves these numbers to who writes the file.
constexpr std::int64_t kOwnSystem = 100000;

/// The tables that the standard asks for, with its words, and the one in which QGIS keeps styles.
constexpr const char* kTables = R"(
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE,
  description TEXT DEFAULT '', last_change DATETIME NOT NULL, min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE,
  srs_id INTEGER, CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL,
  geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL,
  CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name),
  CONSTRAINT uk_gc_table_name UNIQUE (table_name),
  CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents(table_name),
  CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE layer_styles (id INTEGER PRIMARY KEY AUTOINCREMENT, f_table_catalog TEXT, f_table_schema TEXT,
  f_table_name TEXT, f_geometry_column TEXT, styleName TEXT, styleQML TEXT, styleSLD TEXT, useAsDefault BOOLEAN,
  description TEXT, owner TEXT, ui TEXT, update_time DATETIME);
INSERT INTO gpkg_spatial_ref_sys VALUES ('Undefined cartesian SRS', -1, 'NONE', -1, 'undefined', NULL);
INSERT INTO gpkg_spatial_ref_sys VALUES ('Undefined geographic SRS', 0, 'NONE', 0, 'undefined', NULL);
)";

std::string time_text(std::int64_t unix_s) {
    const auto seconds = static_cast<std::time_t>(unix_s);
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.000Z", &utc);
    return text.data();
}

void add_system(Database& db, const std::string& name, std::int64_t srs, std::int64_t epsg,
                const std::string& wkt) {
    Statement(db, "INSERT INTO gpkg_spatial_ref_sys VALUES (?, ?, ?, ?, ?, NULL)")
        .bind(1, std::string_view(name))
        .bind(2, srs)
        .bind(3, std::string_view(epsg > 0 ? "EPSG" : "NONE"))
        .bind(4, srs)
        .bind(5, std::string_view(wkt))
        .run();
}

/// A geometry of the format: its header, and well-known binary.
class Geometry {
  public:
    Geometry(std::int64_t srs, const std::array<double, 4>& extent) {
        put<std::uint8_t>('G'), put<std::uint8_t>('P'), put<std::uint8_t>(0);
        put<std::uint8_t>(0b11);  // the extent follows, little-endian
        put(static_cast<std::int32_t>(srs));
        for (const std::size_t i : {0u, 2u, 1u, 3u}) put(extent[i]);  // min x, max x, min y, max y
        put<std::uint8_t>(1);                                         // little-endian
    }
    template <class T>
    void put(T value) {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof value);
        std::memcpy(bytes_.data() + at, &value, sizeof value);
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

constexpr std::uint32_t kPolygon = 3, kLineZ = 1002;

}  // namespace

GeoPackage::GeoPackage(const std::filesystem::path& path, const std::string& crs, std::int64_t created_s)
    : out_(path), working_(std::filesystem::path(out_.partial()) += ".sqlite"), time_(time_text(created_s)) {
    ::unlink(working_.c_str());
    db_ = std::make_unique<Database>(working_, Database::Access::create);
    db_->execute("PRAGMA journal_mode=OFF");
    db_->execute("PRAGMA synchronous=OFF");
    db_->execute("PRAGMA application_id=" + std::to_string(kApplicationId));
    db_->execute("PRAGMA user_version=" + std::to_string(kVersion));
    db_->execute(kTables);
    add_system(*db_, "WGS 84", 4326, 4326, io::wkt_of_known_crs("EPSG:4326").value_or("undefined"));
    const auto known = crs.empty() ? std::nullopt : io::known_crs(crs);
    const auto wkt = crs.empty() ? std::nullopt : io::wkt_of_known_crs(crs);
    if (known && wkt) {
        srs_ = known->epsg > 0 ? known->epsg : kOwnSystem;
        if (srs_ != 4326) add_system(*db_, known->name, srs_, known->epsg, *wkt);
    }
    db_->execute("BEGIN");
}

GeoPackage::~GeoPackage() {
    insert_.reset();
    db_.reset();
    ::unlink(working_.c_str());
}

void GeoPackage::begin_layer(const LayerDescription& layer) {
    end_layer();
    layer_ = layer.name;
    const bool lines = layer.shape == Shape::line_z;
    std::string columns, places = "?";
    for (const auto& column : layer.columns) {
        columns += std::string(", ") + column.name + " " + column.type;
        places += ", ?";
    }
    db_->execute("CREATE TABLE " + layer_ + " (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, geom " +
                 (lines ? "LINESTRING" : "POLYGON") + columns + ")");
    Statement(*db_, "INSERT INTO gpkg_contents VALUES (?, 'features', ?, ?, ?, NULL, NULL, NULL, NULL, ?)")
        .bind(1, std::string_view(layer_))
        .bind(2, std::string_view(layer_))
        .bind(3, std::string_view(layer.title))
        .bind(4, std::string_view(time_))
        .bind(5, srs_)
        .run();
    Statement(*db_, "INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', ?, ?, ?, 0)")
        .bind(1, std::string_view(layer_))
        .bind(2, std::string_view(lines ? "LINESTRING" : "POLYGON"))
        .bind(3, srs_)
        .bind(4, std::int64_t{lines})
        .run();
    Statement(*db_,
              "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, f_geometry_column, "
              "styleName, styleQML, styleSLD, useAsDefault, description, owner, ui, update_time) "
              "VALUES ('', '', ?, 'geom', ?, ?, '', 1, ?, '', '', ?)")
        .bind(1, std::string_view(layer_))
        .bind(2, std::string_view(layer_))
        .bind(3, std::string_view(layer.qml))
        .bind(4, std::string_view(layer.title))
        .bind(5, std::string_view(time_))
        .run();
    insert_ = std::make_unique<Statement>(*db_, "INSERT INTO " + layer_ + " VALUES (NULL, " + places + ")");
}

void GeoPackage::end_layer() {
    insert_.reset();
    if (!extent_) return;
    Statement update(*db_, "UPDATE gpkg_contents SET min_x=?, min_y=?, max_x=?, max_y=? WHERE table_name=?");
    for (int i = 0; i < 4; ++i) update.bind(i + 1, (*extent_)[static_cast<std::size_t>(i)]);
    update.bind(5, std::string_view(layer_)).run();
    extent_.reset();
}

void GeoPackage::grow(double x, double y) {
    if (!extent_) extent_ = {x, y, x, y};
    auto& e = *extent_;
    e = {std::min(e[0], x), std::min(e[1], y), std::max(e[2], x), std::max(e[3], y)};
}

void GeoPackage::add_box(const std::array<double, 4>& b, std::span<const Cell> cells) {
    Geometry geometry(srs_, b);
    geometry.put(kPolygon);
    geometry.put(std::uint32_t{1});
    geometry.put(std::uint32_t{5});
    for (const auto& [x, y] :
         {std::pair{b[0], b[1]}, {b[2], b[1]}, {b[2], b[3]}, {b[0], b[3]}, {b[0], b[1]}}) {
        geometry.put(x), geometry.put(y);
        grow(x, y);
    }
    add(geometry.bytes(), cells);
}

void GeoPackage::add_line(std::span<const Vec3d> places, std::span<const Cell> cells) {
    std::array<double, 4> box{places[0].x, places[0].y, places[0].x, places[0].y};
    for (const Vec3d& p : places) {
        box = {std::min(box[0], p.x), std::min(box[1], p.y), std::max(box[2], p.x), std::max(box[3], p.y)};
        grow(p.x, p.y);
    }
    Geometry geometry(srs_, box);
    geometry.put(kLineZ);
    geometry.put(static_cast<std::uint32_t>(places.size()));
    for (const Vec3d& p : places) geometry.put(p.x), geometry.put(p.y), geometry.put(p.z);
    add(geometry.bytes(), cells);
}

void GeoPackage::add(std::span<const std::byte> geometry, std::span<const Cell> cells) {
    insert_->bind(1, geometry);
    add_cells(cells);
}

void GeoPackage::add_nowhere(std::span<const Cell> cells) {
    insert_->bind_null(1);
    add_cells(cells);
}

void GeoPackage::add_cells(std::span<const Cell> cells) {
    int index = 2;
    for (const Cell& cell : cells) {
        if (const auto* whole = std::get_if<std::int64_t>(&cell)) insert_->bind(index, *whole);
        if (const auto* real = std::get_if<double>(&cell)) insert_->bind(index, *real);
        if (const auto* text = std::get_if<std::string>(&cell)) insert_->bind(index, std::string_view(*text));
        ++index;
    }
    insert_->run();
}

void GeoPackage::finish() {
    end_layer();
    db_->execute("COMMIT");
    db_.reset();
    const File made(working_, File::Mode::read);
    std::vector<std::byte> buffer(std::size_t{1} << 20);
    for (std::uint64_t at = 0, size = made.size(); at < size; at += buffer.size()) {
        const std::size_t n = made.read_some_at(at, buffer);
        out_.writer().write(std::span(buffer).first(n));
    }
    out_.commit(true);
}

}  // namespace citysplat::gis
