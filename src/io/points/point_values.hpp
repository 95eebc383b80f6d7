#pragma once

#include "model/point.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

/// Values of points that the readers of LAS records and of tables treat alike, and the words for bad ones.
namespace citysplat::io {

/// Labels are whole numbers from 0 to 65534. What is not becomes this, and is found when a batch is checked.
inline constexpr std::uint16_t kBadLabel = 65535;

inline void store_label(double v, PointBatch& out, std::size_t i) {
    const bool good = v >= 0 && v < kBadLabel && v == std::floor(v);
    out.label[i] = good ? static_cast<std::uint16_t>(v) : kBadLabel;
    if (!good && !out.first_bad_label) out.first_bad_label = {i, v};
}

/// The low 16 bits.
inline void store_instance(double v, PointBatch& out, std::size_t i) {
    out.instance[i] = std::fabs(v) < 9e15 ? static_cast<std::uint16_t>(static_cast<std::int64_t>(v)) : 0;
}

/// " is 70000; expected …", after the name of the column. Requires out.label[i] == kBadLabel.
std::string bad_label(const PointBatch& out, std::size_t i);
std::string far_sensor(Vec3d sensor);
inline constexpr const char* kHalfSensor =
    "the sensor position lacks some of x, y and z and is not used; is a column named differently?";

}  // namespace citysplat::io
