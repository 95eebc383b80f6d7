#pragma once

#include "model/region/region.hpp"
#include "model/tile_source.hpp"

#include <memory>
#include <string>
#include <vector>

namespace citysplat {

/// A city of which there is nothing but the splats, or triangles, with their centres in a region, and of some
/// tiles where these are named (the centre of a splat may lie a little outside of its tile). Tiles have their
/// boxes, and those that the edge of the region cuts their counts, as they are uncut: not less than what is
/// there.
class RegionSource final : public TileSource {
  public:
    /// Throws UsageError when no tile of the city reaches into the region; `flags` are what says where it is.
    RegionSource(std::shared_ptr<const TileSource> city, Region region, const std::vector<TileKey>& tiles,
                 const std::string& flags);

    std::span<const TileEntry> tiles() const override { return entries_; }
    ProductKind kind() const override { return city_->kind(); }
    SplatTile load(std::size_t tile) const override;
    MeshTile load_mesh(std::size_t tile) const override;
    const ClassMap& classes() const override { return city_->classes(); }
    std::string crs() const override { return city_->crs(); }

  private:
    std::shared_ptr<const TileSource> city_;
    Region region_;
    std::vector<TileEntry> entries_;
    std::vector<std::size_t> places_;  ///< of the entries in the city
};

/// One tile of a city by itself.
class OneTile final : public TileSource {
  public:
    OneTile(const TileSource& city, std::size_t tile) : city_(city), tile_(tile) {}

    std::span<const TileEntry> tiles() const override { return city_.tiles().subspan(tile_, 1); }
    ProductKind kind() const override { return city_.kind(); }
    SplatTile load(std::size_t) const override { return city_.load(tile_); }
    MeshTile load_mesh(std::size_t) const override { return city_.load_mesh(tile_); }
    const ClassMap& classes() const override { return city_.classes(); }
    std::string crs() const override { return city_.crs(); }

  private:
    const TileSource& city_;
    std::size_t tile_;
};

/// Is `key` that tile, or a part of it? Whatever they are made of.
bool is_part_of(TileKey key, const TileKey& whole);

/// The box of a tile's discs on the lattice.
LatticeBox lattice_box_of(const TileEntry& entry);

}  // namespace citysplat
