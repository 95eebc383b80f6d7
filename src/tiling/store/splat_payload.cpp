#include "tiling/store/splat_payload.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

namespace citysplat::tiling {

namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kBlockBytes = 64 << 10;

/// Frames lie within a tile of the points, and those within kMaxWorld_m.
constexpr auto kFurthestFrame_m = static_cast<std::int64_t>(2 * kMaxWorld_m);

struct Header {
    std::array<char, 8> magic;
    std::uint32_t version, header_bytes;
    std::int32_t level, ix, iy;
    std::uint32_t block_bytes;
    std::int64_t frame_x_m, frame_y_m, frame_z_m;
    std::uint64_t items, points;
    std::int64_t halo_steps;
    Hash128 key, digest;
    std::array<double, 6> box;
    std::uint64_t vertices;  ///< of a mesh
    std::array<std::uint64_t, 10> reserved;
    std::uint64_t checksum;  ///< of the 248 bytes before it
};
static_assert(sizeof(Header) == 256);

std::uint64_t header_checksum(const Header& header) {
    return checksum_bytes(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
}

/// Nothing when it is no payload.
std::optional<ProductKind> kind_of(const Header& header) {
    for (const ProductKind kind : kEveryProductKind)
        if (header.magic == magic_of(payload_kind(kind))) return kind;
    return std::nullopt;
}

TileKey tile_of(const Header& header) {
    return {header.level, header.ix, header.iy, kind_of(header).value_or(ProductKind::splats)};
}

std::size_t block_count(std::size_t body_bytes) { return (body_bytes + kBlockBytes - 1) / kBlockBytes; }

/// Bytes of header, checksums and padding.
std::size_t preamble_bytes(std::size_t body_bytes) {
    return (sizeof(Header) + block_count(body_bytes) * sizeof(std::uint64_t) + 63) / 64 * 64;
}

std::span<const std::byte> block(std::span<const std::byte> body, std::size_t index) {
    const std::size_t at = index * kBlockBytes;
    return body.subspan(at, std::min<std::size_t>(kBlockBytes, body.size() - at));
}

Header read_header(const File& file, const std::string& what) {
    Header header;
    const auto bytes = std::as_writable_bytes(std::span(&header, 1));
    if (file.read_some_at(0, bytes) != bytes.size())
        throw CorruptionError(what + ": " + file.path().string() + " is cut off in its header");
    if (!kind_of(header))
        throw CorruptionError(what + ": " + file.path().string() + " is not a payload of a tile");
    if (header.checksum != header_checksum(header))
        throw CorruptionError(what + ": " + file.path().string() + " is damaged in its header");
    if (header.version != kVersion || header.header_bytes != sizeof(Header) ||
        header.block_bytes != kBlockBytes)
        throw ConfigError(what + ": payload version " + std::to_string(header.version) +
                          " is not the version " + std::to_string(kVersion) + " of this citysplat");
    for (const std::int64_t metres : {header.frame_x_m, header.frame_y_m, header.frame_z_m})
        if (metres < -kFurthestFrame_m || metres > kFurthestFrame_m)
            throw CorruptionError(what + ": " + file.path().string() + ": its frame is at " +
                                  std::to_string(metres) + " m, which is not on Earth");
    return header;
}

/// Where the damage is, for the message.
std::string find_damage(std::span<const std::byte> preamble, std::span<const std::byte> body) {
    for (std::size_t i = 0; i < block_count(body.size()); ++i) {
        std::uint64_t expected;
        std::memcpy(&expected, preamble.data() + sizeof(Header) + i * sizeof expected, sizeof expected);
        if (checksum_bytes(block(body, i)) != expected)
            return "bytes " + std::to_string(preamble.size() + i * kBlockBytes) + " to " +
                   std::to_string(preamble.size() + i * kBlockBytes + block(body, i).size()) + " are damaged";
    }
    return "it is not the object of that name";
}

/// The smallest box around things of a tile, in the world.
class StepBox {
  public:
    void add(const std::array<std::int64_t, 3>& centre, std::int64_t radius) {
        for (std::size_t a = 0; a < 3; ++a) {
            steps_[a] = std::min(steps_[a], centre[a] - radius);
            steps_[a + 3] = std::max(steps_[a + 3], centre[a] + radius);
        }
    }
    std::array<double, 6> in_world(const TileFrame& frame) const {
        const LatticePoint o = frame.origin();
        return {to_metres(o.x + steps_[0]), to_metres(o.y + steps_[1]), to_metres(o.z + steps_[2]),
                to_metres(o.x + steps_[3]), to_metres(o.y + steps_[4]), to_metres(o.z + steps_[5])};
    }

  private:
    static constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();
    std::array<std::int64_t, 6> steps_{kHuge, kHuge, kHuge, -kHuge, -kHuge, -kHuge};
};

}  // namespace

std::array<double, 6> box_of(const SplatTile& tile) {
    if (tile.empty()) return {};
    StepBox box;
    for (std::size_t i = 0; i < tile.size(); ++i)
        box.add({unpack_position(tile.x()[i]), unpack_position(tile.y()[i]), unpack_position(tile.z()[i])},
                tile.radius()[i]);
    return box.in_world(tile.frame());
}

std::array<double, 6> box_of(const MeshTile& tile) {
    if (tile.empty()) return {};
    StepBox box;
    for (std::size_t i = 0; i < tile.vertex_count(); ++i)
        box.add({unpack_position(tile.x()[i]), unpack_position(tile.y()[i]), unpack_position(tile.z()[i])},
                0);
    return box.in_world(tile.frame());
}

TileProduct product_of(const SplatTile& tile) {
    return {ProductKind::splats, tile.size(), 0, tile.frame(), tile.digest(), box_of(tile), tile.bytes()};
}

TileProduct product_of(const MeshTile& tile, ProductKind kind) {
    return {kind,          tile.triangle_count(), tile.vertex_count(), tile.frame(),
            tile.digest(), box_of(tile),          tile.bytes()};
}

std::vector<std::byte> payload_preamble(const TileProduct& product, const PayloadInfo& info) {
    const auto body = product.body;
    Header header{.magic = magic_of(payload_kind(product.kind)),
                  .version = kVersion,
                  .header_bytes = sizeof(Header),
                  .level = info.tile.level,
                  .ix = info.tile.ix,
                  .iy = info.tile.iy,
                  .block_bytes = kBlockBytes,
                  .frame_x_m = product.frame.x_m,
                  .frame_y_m = product.frame.y_m,
                  .frame_z_m = product.frame.z_m,
                  .items = product.items,
                  .points = info.points,
                  .halo_steps = info.halo_steps,
                  .key = info.key,
                  .digest = info.digest,
                  .box = info.box,
                  .vertices = product.vertices,
                  .reserved = {},
                  .checksum = 0};
    header.checksum = header_checksum(header);
    std::vector<std::byte> preamble(preamble_bytes(body.size()));
    std::memcpy(preamble.data(), &header, sizeof header);
    for (std::size_t i = 0; i < block_count(body.size()); ++i) {
        const std::uint64_t sum = checksum_bytes(block(body, i));
        std::memcpy(preamble.data() + sizeof header + i * sizeof sum, &sum, sizeof sum);
    }
    return preamble;
}

Hash128 write_payload(ObjectStore& store, const TileProduct& product, const PayloadInfo& info,
                      std::uint64_t& object_bytes) {
    auto writer = store.create();
    writer.append(payload_preamble(product, info));
    writer.append(product.body);
    object_bytes = writer.position();
    return writer.finish();
}

bool payload_fits(const ObjectStore& store, const ProductRow& product) {
    if (!product.object)
        return product.splats == 0 && product.object_bytes == 0 && product.digest == Hash128{} &&
               product.box == std::array<double, 6>{};
    if (store.size_of(*product.object) != product.object_bytes) return false;
    try {
        const Header h = read_header(store.open(*product.object, "a tile"), "a tile");
        return tile_of(h) == product.tile && h.key == product.key && h.items == product.splats &&
               h.points == product.points && h.halo_steps == product.halo_steps &&
               h.digest == product.digest && h.box == product.box;
    } catch (const CorruptionError&) {
        return false;
    }
}

Payload read_payload(const ObjectStore& store, const Hash128& name, const std::string& what) {
    return read_payload(store.open(name, what), name, what,
                        "citysplat verify --deep --set-aside, then citysplat build make the tile again");
}

Payload read_payload(const File& file, const Hash128& name, const std::string& what,
                     const std::string& way_out) {
    const Header header = read_header(file, what);
    const std::uint64_t size = file.size();
    const TileKey tile = tile_of(header);
    const bool is_mesh = has_triangles(tile.kind);
    // A damaged count must not become an allocation: the file is at least as long as its body.
    const auto body_bytes = [&] {
        return is_mesh ? MeshTile::body_bytes(header.vertices, header.items)
                       : SplatTile::body_bytes(header.items);
    };
    if (header.items > size / (is_mesh ? 12 : 24) || header.vertices > size / 20 ||
        preamble_bytes(body_bytes()) + body_bytes() != size)
        throw CorruptionError(what + ": " + file.path().string() + " has " + std::to_string(size) +
                              " bytes, which does not fit its " + std::to_string(header.items) +
                              (is_mesh ? " triangles" : " splats"));
    Payload payload{.info = {.tile = tile,
                             .key = header.key,
                             .digest = header.digest,
                             .points = header.points,
                             .halo_steps = header.halo_steps,
                             .box = header.box},
                    .splats = {},
                    .mesh = {}};
    const TileFrame frame{header.frame_x_m, header.frame_y_m, header.frame_z_m};
    if (is_mesh)
        payload.mesh = MeshTile(frame, header.vertices, header.items);
    else
        payload.splats = SplatTile(frame, header.items);
    const auto body = is_mesh ? payload.mesh.mutable_bytes() : payload.splats.mutable_bytes();
    std::vector<std::byte> preamble(preamble_bytes(body.size()));
    file.read_at(0, preamble);
    file.read_at(preamble.size(), body);
    if (Hasher().bytes(preamble).bytes(body).finish() != name)
        throw CorruptionError(what + ": " + file.path().string() + ": " + find_damage(preamble, body) + "; " +
                              way_out);
    payload.mesh.check(what);
    return payload;
}

}  // namespace citysplat::tiling
