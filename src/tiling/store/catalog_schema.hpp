#pragma once

#include <array>

namespace citysplat::tiling {

/// The schema, statement by statement in the order SQLite lists it. What is on disk must equal this text.
inline constexpr std::array<const char*, 9> kSchema{
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

}  // namespace citysplat::tiling
