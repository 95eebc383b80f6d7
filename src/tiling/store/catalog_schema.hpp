#pragma once

#include "tiling/store/sqlite.hpp"

#include <cstdint>

/// The tables of a catalog, by version. Version 2 added the angular step of the sensor, version 3
/// the reach of rays and the number of points that were seen through, version 4 findings, version 5 tags,
/// version 6 kinds of products. Catalogs of all versions are read; the first command that writes brings them
/// up to date, in one transaction.
namespace citysplat::tiling {

inline constexpr std::int64_t kCatalogVersion = 6;

/// Makes the tables of the present version in an empty database.
void create_schema(Database& db);

/// Version of a catalog whose tables are exactly those of that version. Throws ConfigError on a foreign or
/// newer file, CorruptionError on a damaged one.
std::int64_t check_schema(Database& db);

/// From an earlier version to the present one; afterwards an earlier program refuses the catalog.
void migrate_schema(Database& db, std::int64_t version);

}  // namespace citysplat::tiling
