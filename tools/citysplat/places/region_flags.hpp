#pragma once

#include "model/region/region.hpp"
#include "model/tile_source.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// --bounds, --polygon and --tiles, the same for all verbs that read a city; of several what all of them
/// leave counts.
class RegionFlags {
  public:
    /// `what` is what of it counts, for the help: "splats".
    void add_to(CLI::App& verb, const std::string& what);

    bool given() const { return !bounds_.empty() || !polygon_.empty() || !tiles_.empty(); }
    /// For messages: those that were given.
    std::string text() const;

    /// What of a city is meant; `tile_size_m` is the side of its base tiles. Throws UsageError when the flags
    /// make no sense, or name a tile that the city does not have, InputError for the file.
    Region region(const TileSource& city, std::optional<std::int64_t> tile_size_m) const;

    /// The city, or what of it is in the region. Throws UsageError when that is nothing.
    std::shared_ptr<const TileSource> cut(std::shared_ptr<const TileSource> city) const;

  private:
    /// --bounds and --polygon alone.
    Region shape(const TileSource& city) const;
    /// --tiles, which the city has.
    std::vector<TileKey> keys(const TileSource& city) const;

    std::vector<double> bounds_;
    std::filesystem::path polygon_;
    std::string polygon_crs_;
    std::vector<std::string> tiles_;
};

/// "level/x/y". Throws UsageError.
TileKey tile_key_from(const std::string& text);

/// "0_12_-7": a tile as part of a file's name.
std::string file_name_of(const TileKey& key);

}  // namespace citysplat::cli
