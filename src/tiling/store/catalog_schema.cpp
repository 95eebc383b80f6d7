#include "tiling/store/catalog_schema.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::tiling {

namespace {

constexpr std::int64_t kApplicationId = 0x43535054;  // "CSPT"

/// Version 1, statement by statement in the order SQLite lists it.
constexpr std::array<const char*, 9> kSchemaVersion1{
    "CREATE TABLE generation(id INTEGER PRIMARY KEY, created_s INTEGER NOT NULL, note TEXT NOT NULL,"
    " tile_size_m INTEGER NOT NULL, parameters_key BLOB NOT NULL, parameters TEXT NOT NULL,"
    " classes TEXT NOT NULL, crs TEXT NOT NULL, radius_m REAL NOT NULL, error_m REAL NOT NULL,"
    " density REAL NOT NULL, samples INTEGER NOT NULL, now_radius_m REAL NOT NULL, now_error_m REAL NOT NULL,"
    " now_density REAL NOT NULL, now_samples INTEGER NOT NULL, points INTEGER NOT NULL,"
    " tiles INTEGER NOT NULL, splats INTEGER NOT NULL, digest BLOB NOT NULL, record BLOB NOT NULL)",
    "CREATE TABLE source(id INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE, content BLOB NOT NULL,"
    " content_bytes INTEGER NOT NULL, object BLOB NOT NULL, object_bytes INTEGER NOT NULL,"
    " format TEXT NOT NULL, crs TEXT NOT NULL, read INTEGER NOT NULL, kept INTEGER NOT NULL,"
    " not_finite INTEGER NOT NULL, out_of_range INTEGER NOT NULL, withheld INTEGER NOT NULL,"
    " duplicates INTEGER NOT NULL, no_return INTEGER NOT NULL, damaged INTEGER NOT NULL,"
    " without_sensor INTEGER NOT NULL,"
    " min_x INTEGER NOT NULL, min_y INTEGER NOT NULL, max_x INTEGER NOT NULL, max_y INTEGER NOT NULL)",
    "CREATE TABLE segment(source INTEGER NOT NULL, x INTEGER NOT NULL, y INTEGER NOT NULL,"
    " points INTEGER NOT NULL, accepted INTEGER NOT NULL, at INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " hash BLOB NOT NULL,"
    " PRIMARY KEY(source, x, y)) WITHOUT ROWID",
    "CREATE TABLE input(id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER, path TEXT NOT NULL,"
    " trajectory TEXT NOT NULL, reading TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, "
    "inode INTEGER NOT NULL,"
    " t_size INTEGER NOT NULL, t_mtime_ns INTEGER NOT NULL, t_inode INTEGER NOT NULL,"
    " source INTEGER NOT NULL)",
    "CREATE TABLE product(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, core BLOB NOT NULL,"
    " level INTEGER NOT NULL, x INTEGER NOT NULL, y INTEGER NOT NULL, object BLOB, object_bytes INTEGER NOT "
    "NULL,"
    " points INTEGER NOT NULL, splats INTEGER NOT NULL, halo_steps INTEGER NOT NULL, digest BLOB NOT NULL,"
    " min_x REAL NOT NULL, min_y REAL NOT NULL, min_z REAL NOT NULL, max_x REAL NOT NULL,"
    " max_y REAL NOT NULL, max_z REAL NOT NULL)",
    "CREATE TABLE tile(id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER,"
    " product INTEGER NOT NULL)",
    "CREATE INDEX source_content ON source(content_bytes)",
    "CREATE INDEX input_source ON input(source)",
    "CREATE INDEX tile_product ON tile(product)",
};

/// What later versions added. In the text of its table SQLite puts a new column behind the others, before a
/// PRIMARY KEY of several columns.
struct AddedColumn {
    std::int64_t version;
    std::string_view table, column;
};
constexpr std::array<AddedColumn, 14> kAddedColumns{{
    {2, "generation", "step_rad REAL NOT NULL DEFAULT 0"},
    {2, "generation", "now_step_rad REAL NOT NULL DEFAULT 0"},
    {3, "segment", "reach_min_x INTEGER NOT NULL DEFAULT 0"},
    {3, "segment", "reach_min_y INTEGER NOT NULL DEFAULT 0"},
    {3, "segment", "reach_max_x INTEGER NOT NULL DEFAULT -1"},
    {3, "segment", "reach_max_y INTEGER NOT NULL DEFAULT -1"},
    {3, "product", "removed INTEGER NOT NULL DEFAULT 0"},
    {4, "generation", "findings TEXT NOT NULL DEFAULT ''"},
    {4, "generation", "findings_of INTEGER NOT NULL DEFAULT 0"},
    {5, "generation", "tags TEXT NOT NULL DEFAULT ''"},
    {5, "generation", "revision INTEGER NOT NULL DEFAULT 0"},
    {6, "product", "kind INTEGER NOT NULL DEFAULT 0"},
    {6, "generation", "triangles INTEGER NOT NULL DEFAULT 0"},
    {6, "generation", "products TEXT NOT NULL DEFAULT ''"},
}};

/// What SQLite lists for a catalog of this version.
std::vector<std::string> schema_of(std::int64_t version) {
    std::vector<std::string> schema(kSchemaVersion1.begin(), kSchemaVersion1.end());
    for (const auto& [since, table, column] : kAddedColumns)
        for (std::string& statement : schema)
            if (since <= version && statement.starts_with("CREATE TABLE " + std::string(table) + "("))
                statement.insert(std::min(statement.find(", PRIMARY KEY("), statement.rfind(')')),
                                 ", " + std::string(column));
    return schema;
}

void set_version(Database& db) { db.execute("PRAGMA user_version=" + std::to_string(kCatalogVersion)); }

}  // namespace

void create_schema(Database& db) {
    Transaction transaction(db, Transaction::Kind::write);
    for (const std::string& statement : schema_of(kCatalogVersion)) db.execute(statement);
    db.execute("PRAGMA application_id=" + std::to_string(kApplicationId));
    set_version(db);
    transaction.commit();
}

std::int64_t check_schema(Database& db) {
    const std::string where = db.path().string();
    if (db.integer("PRAGMA application_id") != kApplicationId)
        throw ConfigError(where + " is not a citysplat catalog");
    const std::int64_t version = db.integer("PRAGMA user_version");
    if (version < 1 || version > kCatalogVersion)
        throw ConfigError(where + " has catalog version " + std::to_string(version) +
                          ", this citysplat reads versions 1 to " + std::to_string(kCatalogVersion) +
                          (version > kCatalogVersion ? "; use a newer citysplat" : "; build the city again"));
    const std::vector<std::string> wanted = schema_of(version);
    Statement schema(db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid");
    std::size_t i = 0;
    while (schema.step()) {
        if (i >= wanted.size() || schema.text(0) != wanted[i])
            throw ConfigError(where + " has a foreign schema; it was not written by citysplat");
        ++i;
    }
    if (i != wanted.size()) throw ConfigError(where + " lacks tables; it was not written by citysplat");
    const std::string damage = db.text("PRAGMA quick_check(1)");
    if (damage != "ok")
        throw CorruptionError(where + " is damaged: " + damage +
                              "; citysplat repair rebuilds the catalog from the objects");
    return version;
}

void migrate_schema(Database& db, std::int64_t version) {
    Transaction transaction(db, Transaction::Kind::write);
    for (const auto& [since, table, column] : kAddedColumns)
        if (since > version)
            db.execute("ALTER TABLE " + std::string(table) + " ADD COLUMN " + std::string(column));
    set_version(db);
    transaction.commit();
}

}  // namespace citysplat::tiling
