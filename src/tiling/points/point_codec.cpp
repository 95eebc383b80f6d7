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
constexpr std::size_t planes_of(PointLayout layout) { return layout == PointLayout::without_time ? 20 : 24; }
constexpr std::size_t kMostPlanes = planes_of(PointLayout::with_time), kRayPlanes = 22;
/// What the version before hashed of a point: all but the slot.
constexpr std::size_t kBytesWithoutTime = offsetof(TilePoint, slot);
static_assert(kBytesWithoutTime == 24);
constexpr std::size_t kBlock = 1024;
constexpr std::int32_t kCellMask = (1 << kCellShift) - 1;
/// From lattice steps to those of sensors.
constexpr int kSensorShift = 7;
static_assert(std::int64_t{1} << kSensorShift == kSensorSteps);

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

/// The same for a ray: 22 bytes. Numbers of 32 bits are two of 16, the lower one first.
struct SmallRay {
    std::array<std::uint16_t, 2> x, y, z;
    std::array<std::uint16_t, 3> sensor;
    std::array<std::uint16_t, 2> slot;
};
static_assert(sizeof(SmallRay) == kRayPlanes);

std::array<std::uint16_t, 2> halves(std::uint32_t v) {
    return {static_cast<std::uint16_t>(v), static_cast<std::uint16_t>(v >> 16)};
}
std::uint32_t whole(std::uint16_t low, std::uint16_t high) { return low | std::uint32_t{high} << 16; }

/// Where the sensor of a ray was along one axis, in its own steps and modulo 2¹⁶. What is decoded is what was
/// encoded, whatever was rounded here.
std::uint16_t sensor_place(std::int32_t point, std::int16_t to_sensor) {
    return static_cast<std::uint16_t>((point >> kSensorShift) + to_sensor);
}
std::int16_t to_sensor(std::int32_t point, std::uint16_t place) {
    return static_cast<std::int16_t>(static_cast<std::uint16_t>(place - (point >> kSensorShift)));
}

/// Puts record i of n into the planes.
template <class Record>
void split(const Record& record, std::uint8_t* planes, std::size_t n, std::size_t i) {
    std::array<std::uint8_t, sizeof(Record)> bytes;
    std::memcpy(bytes.data(), &record, sizeof record);
    for (std::size_t k = 0; k < bytes.size(); ++k) planes[k * n + i] = bytes[k];
}

/// Calls take(i, fields, j) for each of n records: its numbers of 16 bits are fields[0…][j]. Planes are put
/// together field by field, a block of records at a time: loops that compilers make wide.
template <class Take>
void join(const std::uint8_t* planes, std::size_t plane_count, std::size_t n, const Take& take) {
    std::array<std::array<std::uint16_t, kBlock>, kMostPlanes / 2> fields{};
    for (std::size_t first = 0; first < n; first += kBlock) {
        const std::size_t count = std::min(kBlock, n - first);
        for (std::size_t f = 0; f < plane_count / 2; ++f) {
            const std::uint8_t *low = planes + 2 * f * n + first, *high = low + n;
            for (std::size_t i = 0; i < count; ++i)
                fields[f][i] = static_cast<std::uint16_t>(low[i] | high[i] << 8);
        }
        for (std::size_t i = 0; i < count; ++i) take(first + i, fields, i);
    }
}

/// Appends the planes of the context, compressed.
void compress(Context& c, std::vector<std::byte>& out) {
    const std::size_t at = out.size(), bound = ZSTD_compressBound(c.planes.size());
    out.resize(at + bound);
    const std::size_t size =
        ZSTD_compressCCtx(c.compress, out.data() + at, bound, c.planes.data(), c.planes.size(), kLevel);
    if (ZSTD_isError(size)) throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(size));
    out.resize(at + size);
}

/// Fills the planes of the context; false when the bytes are not what makes that many.
bool decompress(Context& c, std::span<const std::byte> bytes, std::size_t planes_bytes) {
    c.planes.resize(planes_bytes);
    const std::size_t got =
        ZSTD_decompressDCtx(c.decompress, c.planes.data(), c.planes.size(), bytes.data(), bytes.size());
    return !ZSTD_isError(got) && got == c.planes.size();
}

}  // namespace

void encode_points(std::span<const TilePoint> points, std::vector<std::byte>& out) {
    Context& c = context();
    const std::size_t n = points.size();
    std::int32_t z_min = points.empty() ? 0 : points[0].z;
    for (const TilePoint& p : points) z_min = std::min(z_min, p.z);
    c.planes.resize(sizeof z_min + n * kMostPlanes);
    std::memcpy(c.planes.data(), &z_min, sizeof z_min);
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
        split(s, c.planes.data() + sizeof z_min, n, i);
    }
    compress(c, out);
}

bool decode_points(const EncodedCell& encoded, std::vector<TilePoint>& out) {
    Context& c = context();
    const auto [bytes, n, cell, layout] = encoded;
    const std::size_t planes = planes_of(layout);
    std::int32_t z_min;
    if (!decompress(c, bytes, sizeof z_min + n * planes)) return false;
    std::memcpy(&z_min, c.planes.data(), sizeof z_min);
    const std::int32_t x0 = (cell / kCellsPerSide) << kCellShift, y0 = (cell % kCellsPerSide) << kCellShift;
    const std::size_t at = out.size();
    out.resize(at + n);
    std::uint16_t x = 0;
    join(c.planes.data() + sizeof z_min, planes, n, [&](std::size_t i, const auto& fields, std::size_t j) {
        TilePoint& p = out[at + i];
        x = static_cast<std::uint16_t>(x + fields[0][j]);
        p.x = x0 + x;
        p.y = y0 + fields[1][j];
        p.z =
            static_cast<std::int32_t>(whole(fields[2][j], fields[3][j]) + static_cast<std::uint32_t>(z_min));
        const std::array<std::uint16_t, 8> rest{fields[4][j], fields[5][j], fields[6][j],  fields[7][j],
                                                fields[8][j], fields[9][j], fields[10][j], fields[11][j]};
        std::memcpy(&p.label, rest.data(), sizeof rest);
    });
    return true;
}

void encode_rays(std::span<const Ray> rays, std::vector<std::byte>& out) {
    Context& c = context();
    const std::size_t n = rays.size();
    c.planes.resize(n * kRayPlanes);
    for (std::size_t i = 0; i < n; ++i) {
        const Ray& r = rays[i];
        const SmallRay s{.x = halves(static_cast<std::uint32_t>(r.x)),
                         .y = halves(static_cast<std::uint32_t>(r.y)),
                         .z = halves(static_cast<std::uint32_t>(r.z)),
                         .sensor = {sensor_place(r.x, r.sensor_dx), sensor_place(r.y, r.sensor_dy),
                                    sensor_place(r.z, r.sensor_dz)},
                         .slot = halves(r.slot)};
        split(s, c.planes.data(), n, i);
    }
    compress(c, out);
}

bool decode_rays(std::span<const std::byte> bytes, std::size_t count, std::vector<Ray>& out) {
    Context& c = context();
    if (!decompress(c, bytes, count * kRayPlanes)) return false;
    const std::size_t at = out.size();
    out.resize(at + count);
    join(c.planes.data(), kRayPlanes, count, [&](std::size_t i, const auto& fields, std::size_t j) {
        const auto number = [&](std::size_t f) {
            return static_cast<std::int32_t>(whole(fields[f][j], fields[f + 1][j]));
        };
        const std::int32_t x = number(0), y = number(2), z = number(4);
        out[at + i] = {x,
                       y,
                       z,
                       static_cast<std::uint32_t>(number(9)),
                       to_sensor(x, fields[6][j]),
                       to_sensor(y, fields[7][j]),
                       to_sensor(z, fields[8][j])};
    });
    return true;
}

std::uint64_t checksum_points(std::span<const TilePoint> points, PointLayout layout) {
    if (layout != PointLayout::without_time) return checksum_bytes(std::as_bytes(points));
    std::vector<std::byte> bytes(points.size() * kBytesWithoutTime);
    for (std::size_t i = 0; i < points.size(); ++i)
        std::memcpy(bytes.data() + i * kBytesWithoutTime, &points[i], kBytesWithoutTime);
    return checksum_bytes(bytes);
}

}  // namespace citysplat::tiling
