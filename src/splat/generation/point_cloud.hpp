#pragma once

#include "core/cancel.hpp"
#include "core/math/lattice.hpp"
#include "core/math/vec_hd.hpp"
#include "core/prefetch.hpp"
#include "model/class_map.hpp"
#include "model/point.hpp"
#include "model/splat_hd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::splat {

/// What a point carries besides its place.
struct PointAttributes {
    std::uint16_t label, intensity;
    std::uint16_t range;  ///< distance to the sensor in steps of TilePoint::kSensorStepsPerMetre; 0 unknown
    std::int16_t sensor_dx, sensor_dy, sensor_dz;

    bool has_sensor() const { return sensor_dx != TilePoint::kNoSensor; }
    Vec3d to_sensor() const {
        return {static_cast<double>(sensor_dx), static_cast<double>(sensor_dy),
                static_cast<double>(sensor_dz)};
    }
};

/// The points that splats are made from, as columns along a space-filling curve. Points of dynamic classes
/// are left out, and points that share a lattice position are one: the first in canonical order stands for
/// all, so that no amount of duplicates can crowd a neighbourhood. `rank` is the place of a point in
/// canonical order (x, y, z): it settles ties between equally distant neighbours.
struct PointCloud {
    TileFrame frame;
    std::vector<std::int32_t> x, y, z;  ///< lattice steps from the frame
    std::vector<std::uint32_t> rank;
    std::vector<PointAttributes> attributes;
    std::vector<SplatGroup> group;  ///< from the class map, or as given

    std::size_t size() const { return rank.size(); }
    LatticePoint world(std::size_t i) const {
        const LatticePoint o = frame.origin();
        return {o.x + x[i], o.y + y[i], o.z + z[i]};
    }
    /// Asks for a point that will be looked at soon.
    void fetch(std::size_t i) const {
        prefetch(&x[i]), prefetch(&y[i]), prefetch(&z[i]), prefetch(&attributes[i]);
    }
};

/// Requires `points` sorted by operator<=>. `groups` is empty (the class map decides) or one per point.
/// Throws InputError when points are farther than 65 km from the frame.
PointCloud make_point_cloud(TileFrame frame, std::span<const TilePoint> points,
                            std::span<const SplatGroup> groups, const ClassMap& classes,
                            const CancelToken& cancel);

}  // namespace citysplat::splat
