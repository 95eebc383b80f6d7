#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"
#include "view/server/city_facts.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::view {

/// The splats of one generation that another one does not have: a splat cancels one with the same centre and
/// the same attributes, bit by bit, in the tile with the same key, or in any tile that reaches there where
/// the grids differ. Its tiles are those of the generation, without those that are the same object in both;
/// `splats` of an entry is an upper bound. Tiles are compared when they are read. Both generations outlive
/// it.
class OnlyInOne final : public TileSource {
  public:
    OnlyInOne(const ShownCity& of, const ShownCity& without);

    std::span<const TileEntry> tiles() const override { return entries_; }
    /// What remains of a tile. Throws what reading the tiles throws.
    SplatTile load(std::size_t tile) const override;
    const ClassMap& classes() const override { return of_.tiles.classes(); }
    std::string crs() const override { return of_.tiles.crs(); }

  private:
    ShownCity of_, without_;
    std::vector<TileEntry> entries_;
    std::vector<std::size_t> sources_;                ///< place of each entry in `of`
    std::vector<std::vector<std::size_t>> opposite_;  ///< tiles of `without` that may have its splats
};

/// How a tile differs between two generations.
struct TileChange {
    enum class Kind { changed, added, removed };
    TileKey key;
    Kind kind = Kind::changed;
    std::uint64_t only_before = 0, only_after = 0;  ///< splats
    std::string problem;                            ///< why it could not be compared
    Vec3d min{0, 0, 0}, max{0, 0, 0};               ///< around the discs of both
};

/// Two generations, and what each has alone.
struct GenerationDiff {
    GenerationDiff(const ShownCity& before, const ShownCity& after);

    /// Every tile with a splat that only one has, or that cannot be compared; sorted by key. Reads them all.
    std::vector<TileChange> changes(const CancelToken& cancel) const;

    ShownCity before, after;
    OnlyInOne only_before, only_after;
};

}  // namespace citysplat::view
