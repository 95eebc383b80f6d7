#include "tiling/points/point_codec.hpp"

#include "core/hash.hpp"
#include "tiling/sector.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>

namespace citysplat::tiling {

namespace {

/// Speed matters more than the last percent: the disk is not what limits a partition (docs/adr/0202).
constexpr int kLevel = 1;
/// Of a layout; the time comes last.
constexpr std::size_t planes_of(PointLayout layout) { return layout == PointLayout::with_time ? 24 : 20; }
constexpr std::size_t kMostPlanes = planes_of(PointLayout::with_time);
/// What the version before hashed of a point: all but the slot.
constexpr std::size_t kBytesWithoutTime = offsetof(TilePoint, slot);
static_assert(kBytesWithoutTime == 24);
constexpr std::size_t kBlock = 1024;
constexpr std::int32_t kCellMask = (1 << kCellShift) - 1;

struct Context {
    ZSTD_CCtx* compress = ZSTD_createCCtx();
    ZSTD_DCtx* decompress = ZSTD_createDCtx();
    std::vector<std::uint8_t> planes;
    Context() {
        if (!compress || !decompress) throw std::bad_alloc();
    }
    ~Context() {
        ZSTD_freeCCtx(compress);
        ZSTD_freeDCtx(decompress);
    }
};

/// Work space of the calling thread; a context is 1 MB and worth keeping.
Context& context() {
    thread_local Context c;
    return c;
}

/// The numbers of a point as they are compressed: 24 bytes.
struct Small {
    std::uint16_t dx, y;
    std::uint32_t z;
    std::array<std::uint16_t, 8> rest;  ///< label, intensity, instance, sensor x y z, slot (low, high)
};
static_assert(sizeof(Small) == kMostPlanes);

}  // namespace

void encode_points(std::span<const TilePoint> points, std::vector<std::byte>& out) {
    Context& c = context();
    const std::size_t n = points.size();
    std::int32_t z_min = points.empty() ? 0 : points[0].z;
    for (const TilePoint& p : points) z_min = std::min(z_min, p.z);
    c.planes.resize(sizeof z_min + n * kMostPlanes);
    std::memcpy(c.planes.data(), &z_min, sizeof z_min);
    std::uint8_t* const plane = c.planes.data() + sizeof z_min;
    std::int32_t x_before = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const TilePoint& p = points[i];
        const std::int32_t x = p.x & kCellMask;
        Small s{.dx = static_cast<std::uint16_t>(x - x_before),
                .y = static_cast<std::uint16_t>(p.y & kCellMask),
                .z = static_cast<std::uint32_t>(p.z) - static_cast<std::uint32_t>(z_min),
                .rest = {}};
        std::memcpy(s.rest.data(), &p.label, sizeof s.rest);
        x_before = x;
        std::array<std::uint8_t, kMostPlanes> bytes;
        std::memcpy(bytes.data(), &s, sizeof s);
        for (std::size_t k = 0; k < kMostPlanes; ++k) plane[k * n + i] = bytes[k];
    }
    const std::size_t at = out.size(), bound = ZSTD_compressBound(c.planes.size());
    out.resize(at + bound);
    const std::size_t size =
        ZSTD_compressCCtx(c.compress, out.data() + at, bound, c.planes.data(), c.planes.size(), kLevel);
    if (ZSTD_isError(size)) throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(size));
    out.resize(at + size);
}

bool decode_points(const EncodedCell& encoded, std::vector<TilePoint>& out) {
    Context& c = context();
    const auto [bytes, n, cell, layout] = encoded;
    const std::size_t planes = planes_of(layout);
    std::int32_t z_min;
    c.planes.resize(sizeof z_min + n * planes);
    const std::size_t got =
        ZSTD_decompressDCtx(c.decompress, c.planes.data(), c.planes.size(), bytes.data(), bytes.size());
    if (ZSTD_isError(got) || got != c.planes.size()) return false;
    std::memcpy(&z_min, c.planes.data(), sizeof z_min);
    const std::uint8_t* const plane = c.planes.data() + sizeof z_min;
    const std::int32_t x0 = (cell / kCellsPerSide) << kCellShift, y0 = (cell % kCellsPerSide) << kCellShift;
    const std::size_t at = out.size();
    out.resize(at + n);
    std::uint16_t x = 0;
    // Planes are put together field by field, a block of points at a time: loops that compilers make wide.
    std::array<std::array<std::uint16_t, kBlock>, kMostPlanes / 2> fields{};
    for (std::size_t first = 0; first < n; first += kBlock) {
        const std::size_t count = std::min(kBlock, n - first);
        for (std::size_t f = 0; f < planes / 2; ++f) {
            const std::uint8_t *low = plane + 2 * f * n + first, *high = low + n;
            for (std::size_t i = 0; i < count; ++i)
                fields[f][i] = static_cast<std::uint16_t>(low[i] | high[i] << 8);
        }
        for (std::size_t i = 0; i < count; ++i) {
            TilePoint& p = out[at + first + i];
            x = static_cast<std::uint16_t>(x + fields[0][i]);
            p.x = x0 + x;
            p.y = y0 + fields[1][i];
            const std::uint32_t z = fields[2][i] | std::uint32_t{fields[3][i]} << 16;
            p.z = static_cast<std::int32_t>(z + static_cast<std::uint32_t>(z_min));
            const std::array<std::uint16_t, 8> rest{fields[4][i], fields[5][i], fields[6][i],  fields[7][i],
                                                    fields[8][i], fields[9][i], fields[10][i], fields[11][i]};
            std::memcpy(&p.label, rest.data(), sizeof rest);
        }
    }
    return true;
}

std::uint64_t checksum_points(std::span<const TilePoint> points, PointLayout layout) {
    if (layout == PointLayout::with_time) return checksum_bytes(std::as_bytes(points));
    std::vector<std::byte> bytes(points.size() * kBytesWithoutTime);
    for (std::size_t i = 0; i < points.size(); ++i)
        std::memcpy(bytes.data() + i * kBytesWithoutTime, &points[i], kBytesWithoutTime);
    return checksum_bytes(bytes);
}

}  // namespace citysplat::tiling
