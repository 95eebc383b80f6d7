#pragma once

#include "model/mesh_tile.hpp"
#include "model/splat_tile.hpp"
#include "model/tile_grid.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace citysplat::tiling {

/// What was made of a tile, whatever its kind. Looks at a SplatTile or a MeshTile, which must outlive it.
struct TileProduct {
    ProductKind kind;
    std::uint64_t items, vertices;  ///< splats and 0; triangles and their vertices
    TileFrame frame;
    Hash128 digest;
    std::array<double, 6> box;  ///< as in PayloadInfo
    std::span<const std::byte> body;
};
TileProduct product_of(const SplatTile& tile);
/// Requires a kind of triangles.
TileProduct product_of(const MeshTile& tile, ProductKind kind = ProductKind::mesh);

/// The kind of the objects that hold products of a kind.
constexpr ObjectKind payload_kind(ProductKind kind) {
    constexpr std::array kinds{ObjectKind::payload, ObjectKind::mesh, ObjectKind::imls};
    return kinds[static_cast<std::size_t>(kind)];
}
constexpr bool holds_product(ObjectKind object) {
    for (const ProductKind kind : kEveryProductKind)
        if (payload_kind(kind) == object) return true;
    return false;
}

/// What a payload says about itself. Everything here is inside the hashed bytes, so that a payload
/// under a wrong name, or a right payload in the place of another tile, is found out on load.
struct PayloadInfo {
    TileKey tile;
    Hash128 key;  ///< of the points and parameters it was made from
    Hash128 digest;
    std::uint64_t points = 0;
    std::int64_t halo_steps = 0;
    std::array<double, 6> box{};  ///< min x y z, max x y z in metres around all discs, or triangles
};

/// The file of one tile (docs/formats.md):
///
///   header     256 bytes, little-endian
///   checksums  u64 per 64 KiB block of the body
///   padding    to a multiple of 64
///   body       the columns of SplatTile or MeshTile as they stand in memory
///
/// A tile is one sequential read into the buffer it is used from. The name of the object is the hash of all
/// bytes, which is what every load compares; the block checksums only tell where the damage is. A compressed
/// body would save about a quarter and cost the direct read: not taken.
Hash128 write_payload(ObjectStore& store, const TileProduct& product, const PayloadInfo& info,
                      std::uint64_t& object_bytes);

/// The bytes of that file before the body, for payloads that are kept outside of a city.
std::vector<std::byte> payload_preamble(const TileProduct& product, const PayloadInfo& info);

/// World box around all discs, radius included.
std::array<double, 6> box_of(const SplatTile& tile);
std::array<double, 6> box_of(const MeshTile& tile);

struct Payload {
    PayloadInfo info;
    SplatTile splats;
    MeshTile mesh;  ///< one of both, as PayloadInfo::tile says
};

/// Whether the payload that a product names is there, has its size, and its header says what the row says. A
/// product without splats has no payload and nothing else either. Reads the header only.
bool payload_fits(const ObjectStore& store, const ProductRow& product);

/// Reads and verifies a payload. Throws CorruptionError naming `what` and the damaged bytes.
Payload read_payload(const ObjectStore& store, const Hash128& name, const std::string& what);
/// The same from a file of any place. `way_out` is what the message about damaged bytes ends with.
Payload read_payload(const File& file, const Hash128& name, const std::string& what,
                     const std::string& way_out);

}  // namespace citysplat::tiling
