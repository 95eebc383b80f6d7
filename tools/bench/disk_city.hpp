#pragma once

#include "model/tile_source.hpp"

#include <filesystem>

namespace citysplat::bench {

/// Writes the tiles of a made-up city into a directory that does not exist, as a build does: objects,
/// catalog and one generation, all durable. Nothing but its splats is there: it has no points and no inputs.
void write_city(const TileSource& city, const std::filesystem::path& directory);

/// Drops the objects of a city from the page cache, so that the next to read them waits for the disk.
void forget_pages(const std::filesystem::path& city);

}  // namespace citysplat::bench
