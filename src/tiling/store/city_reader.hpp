#pragma once

#include "model/tile_source.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/object_store.hpp"
#include "tiling/store/splat_payload.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::tiling {

/// One generation of a city on disk, opened to read. The generation stays pinned for the life of the object:
/// builders may publish and gc may run, what this reader sees does not change. Works on a read-only mount.
class CityReader final : public TileSource {
  public:
    /// Opens the latest generation, or the given one, to read its products of one kind. Throws ConfigError
    /// when there is no such city or generation, or when it has no such products, CorruptionError when the
    /// catalog is damaged.
    explicit CityReader(const std::filesystem::path& city, std::optional<std::int64_t> generation = {},
                        ProductKind kind = ProductKind::splats);

    std::span<const TileEntry> tiles() const override { return entries_; }
    ProductKind kind() const override { return kind_; }
    SplatTile load(std::size_t tile) const override;
    MeshTile load_mesh(std::size_t tile) const override;
    const ClassMap& classes() const override { return classes_; }
    std::string crs() const override { return generation_.crs; }

    const GenerationRow& generation() const { return generation_; }

  private:
    Payload read(std::size_t tile, bool triangles) const;

    ObjectStore store_;
    ProductKind kind_;
    std::optional<CityLock> pin_;
    GenerationRow generation_;
    ClassMap classes_;
    std::vector<ProductRow> products_;  ///< of this kind, not empty; parallel to entries_
    std::vector<TileEntry> entries_;
};

}  // namespace citysplat::tiling
