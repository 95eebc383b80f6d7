#pragma once

#include "core/cancel.hpp"
#include "model/splat_tile.hpp"
#include "objects/object_points.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace citysplat::objects {

/// Directions from which an object may be seen: 36 azimuths, counter-clockwise from its x axis in steps of
/// 10°, at three elevations.
inline constexpr std::size_t kAzimuths = 36, kElevations = 3;
inline constexpr std::array<double, kElevations> kElevation_deg{5, 20, 45};
/// Share of the rays through the box from a direction that meet the object, in percent.
using Coverage = std::array<std::uint8_t, kAzimuths * kElevations>;
inline constexpr std::size_t coverage_index(std::size_t azimuth, std::size_t elevation) {
    return elevation * kAzimuths + azimuth;
}

/// How splats of an object are made.
struct ShapeOptions {
    std::uint16_t label = 0;  ///< of all splats
    bool rigid = true;        ///< made of surfaces, like a vehicle; else shapes decide point by point
};

/// Splats by the generator of cities, with means measured on these points alone, in the frame of the object.
/// Requires points in canonical order.
SplatTile make_splats(std::span<const ObjectPoint> points, const ShapeOptions& options,
                      const CancelToken& cancel);

/// Rays from 10 m away, through a grid of places in the box.
Coverage coverage_of(const SplatTile& splats, const ObjectSize& size);

}  // namespace citysplat::objects
