#pragma once

#include "core/hash.hpp"
#include "gis/ept_tree.hpp"
#include "model/tile_grid.hpp"
#include "tiling/sector.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The JSON files of an EPT.
namespace citysplat::gis {

inline constexpr const char* kEptIndexFile = "citysplat.json";

/// What a tile set was made of: citysplat.json beside ept.json. Tells the next run what it may keep.
struct EptIndex {
    EptCube cube;
    std::int64_t tile_size_m = 0;
    struct Tile {
        Hash128 digest;  ///< of its splats
        /// Where their centres lie: a splat may belong to a tile and lie a little outside of it.
        std::vector<tiling::Sector> sectors;
        friend bool operator==(const Tile&, const Tile&) = default;
    };
    std::map<TileKey, Tile> tiles;
    /// False while a run writes the files: what a stopped run leaves is a mixture of two states.
    bool finished = true;

    /// Nothing when there is no such file, or one of another version. Throws InputError when it is damaged.
    static std::optional<EptIndex> read(const std::filesystem::path& folder);
    void write(const std::filesystem::path& folder) const;
};

using EptCounts = std::map<EptKey, std::uint64_t>;

/// How many points each node has. One file of ept-hierarchy/ has all nodes down to the leaf depth; what is
/// below one of these has a file named after it.
class EptHierarchy {
  public:
    EptHierarchy(std::filesystem::path folder, const EptCube& cube)
        : folder_(std::move(folder)), cube_(cube) {}

    /// The nodes down to the leaf depth; none when there is no file. Throws InputError when it is damaged.
    EptCounts read_top() const;
    /// A node at the leaf depth and those below.
    EptCounts read_below(const EptKey& leaf) const;
    /// Nodes at the leaf depth with a file of their own are -1, as uint64.
    static constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};
    void write_top(const EptCounts& counts) const;
    /// Removes the file when there is nothing but the node itself.
    void write_below(const EptKey& leaf, const EptCounts& counts) const;

  private:
    std::filesystem::path file_of(const EptKey& key) const;
    std::filesystem::path folder_;
    EptCube cube_;
};

struct EptSummary {
    std::uint64_t points = 0;
    std::array<double, 6> box{};  ///< around all points
    std::string crs;
};
void write_ept_json(const std::filesystem::path& folder, const EptCube& cube, const EptSummary& summary);

}  // namespace citysplat::gis
