#pragma once

#include "core/math/box.hpp"
#include "core/math/vec_hd.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace citysplat {

/// A cube of 20 cm in the frame of a sensor, within 6 m of it along each axis.
struct SensorCell {
    static constexpr double kSize_m = 0.2, kReach_m = 6;
    static constexpr int kPerAxis = 60;
    static constexpr std::uint32_t kCount = kPerAxis * kPerAxis * kPerAxis;

    /// The number of the cell that a point is in, x running fastest; nothing when it is too far away.
    static std::optional<std::uint32_t> of(Vec3d in_sensor) {
        std::uint32_t number = 0;
        for (const double v : {in_sensor.z, in_sensor.y, in_sensor.x}) {
            if (!(v >= -kReach_m && v < kReach_m)) return std::nullopt;
            const int step = static_cast<int>(std::floor(v / kSize_m)) + kPerAxis / 2;
            number = number * kPerAxis + static_cast<std::uint32_t>(std::clamp(step, 0, kPerAxis - 1));
        }
        return number;
    }
    static Vec3d centre(std::uint32_t number) {
        const auto along = [](std::uint32_t step) {
            return (static_cast<int>(step) - kPerAxis / 2 + 0.5) * kSize_m;
        };
        return {along(number % kPerAxis), along(number / kPerAxis % kPerAxis),
                along(number / kPerAxis / kPerAxis)};
    }
};

/// What of a sensor's scans is left out, by where a point is in the frame of the sensor at its own time.
struct SensorMask {
    enum class Reason { too_near, too_far, box, own_car };
    static constexpr std::size_t kReasons = 4;
    /// Words of JSON, in the order of Reason.
    static constexpr std::array<const char*, kReasons> kNames{"too_near", "too_far", "mask_box", "own_car"};
    using Counts = std::array<std::uint64_t, kReasons>;

    double min_range_m = 0;
    double max_range_m = std::numeric_limits<double>::infinity();
    std::vector<Box3d> boxes;
    std::vector<std::uint32_t> own_car;  ///< numbers of SensorCells, ascending

    bool only_ranges() const { return boxes.empty() && own_car.empty(); }
    bool empty() const {
        return only_ranges() && min_range_m <= 0 && max_range_m == std::numeric_limits<double>::infinity();
    }
    /// Why a point is left out; nothing when it stays.
    std::optional<Reason> reason(Vec3d in_sensor) const {
        const double range = length(in_sensor);
        if (range < min_range_m) return Reason::too_near;
        if (range > max_range_m) return Reason::too_far;
        for (const Box3d& box : boxes)
            if (in_sensor.x >= box.min.x && in_sensor.x <= box.max.x && in_sensor.y >= box.min.y &&
                in_sensor.y <= box.max.y && in_sensor.z >= box.min.z && in_sensor.z <= box.max.z)
                return Reason::box;
        if (own_car.empty()) return std::nullopt;
        const auto cell = SensorCell::of(in_sensor);
        if (cell && std::binary_search(own_car.begin(), own_car.end(), *cell)) return Reason::own_car;
        return std::nullopt;
    }
};

}  // namespace citysplat
