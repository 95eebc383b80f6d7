#pragma once

#include "core/math/vec_hd.hpp"
#include "model/sensor_mask.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace citysplat {

/// A run of points in world coordinates as a file delivers them, one vector per column. An optional column is
/// either empty (the file does not have it) or as long as x.
struct PointBatch {
    std::vector<double> x, y, z;           ///< metres, world
    std::vector<double> gps_time;          ///< seconds, as in the file
    std::vector<std::uint16_t> intensity;  ///< full 16-bit scale; readers rescale what is not
    std::vector<std::uint16_t> label;      ///< semantic class as in the file
    std::vector<std::uint16_t> instance;
    std::vector<float> scan_angle_deg;
    std::vector<Vec3d> sensor;           ///< where the sensor was, world
    std::vector<std::uint8_t> withheld;  ///< 1: the producer marked the point as deleted
    std::vector<std::uint16_t> beam;     ///< which laser of the sensor fired ("ring"); kNoBeam: not known

    static constexpr std::uint16_t kNoBeam = 65535;

    std::uint64_t no_return = 0;  ///< records left out: no position, by the format's convention
    std::uint64_t damaged = 0;    ///< records left out under ReadOptions::salvage
    SensorMask::Counts masked{};  ///< points left out by ReadOptions::mask, by reason

    /// A ray that met nothing: one of the `no_return` records, where the file lets us know its direction. Not
    /// a column; usually empty, and never longer than `no_return`.
    struct EmptyRay {
        Vec3d origin;     ///< where the sensor was, world
        Vec3d direction;  ///< world, length 1
        double time_s;    ///< on the clock of gps_time
        std::uint16_t beam;
    };
    std::vector<EmptyRay> empty_rays;

    /// While a reader fills the batch: what its message will say about a label that is none.
    struct BadLabel {
        std::size_t at;
        double value;
    };
    std::optional<BadLabel> first_bad_label;

    std::size_t size() const { return x.size(); }
    void clear();
    void reserve(std::size_t n);  ///< mandatory columns only
    /// Removes the points whose flag is not 0, keeping the order. Requires flags.size() == size().
    void remove(const std::vector<std::uint8_t>& flags);
    /// Throws std::logic_error when an optional column has a length of its own.
    void check() const;
};

/// A point of a tile: lattice steps from the tile's frame, with what splat generation needs. Segments on disk
/// store exactly these bytes (docs/formats.md). The order of the members is the canonical order.
struct TilePoint {
    std::int32_t x, y, z;
    std::uint16_t label;
    std::uint16_t intensity;
    std::uint16_t instance;
    /// Sensor minus point in steps of 2⁻⁶ m, clamped to ±511 m; kNoSensor in all three when unknown.
    std::int16_t sensor_dx, sensor_dy, sensor_dz;
    std::uint32_t slot;  ///< when it was measured (time_slot() below); kNoSlot when unknown

    static constexpr std::int16_t kNoSensor = INT16_MIN;
    static constexpr int kSensorStepsPerMetre = 64;
    static constexpr std::uint32_t kNoSlot = 0;
    static constexpr int kSlotsPerSecond = 10;  ///< most spinning sensors turn once in a slot; never change
    bool has_sensor() const { return sensor_dx != kNoSensor; }
    friend auto operator<=>(const TilePoint&, const TilePoint&) = default;
};
static_assert(sizeof(TilePoint) == 28 && std::has_unique_object_representations_v<TilePoint>);

/// The tenth of a second that a time lies in, counted from the zero of its clock. A function of the time
/// alone: neither files nor their order matter, and of two slots of one clock the larger one is later, unless
/// 13 years lie between them (then numbers begin again at 1). Clocks that start anew, every week or with
/// every drive, use the same slots again; whoever compares slots must be right in that case, too. kNoSlot for
/// what cannot be a time: not finite, or farther than 30 million years from zero.
std::uint32_t time_slot(double time_s);

}  // namespace citysplat
