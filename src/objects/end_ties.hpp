#pragma once

#include "objects/object_points.hpp"
#include "objects/surface_map.hpp"

#include <optional>
#include <span>
#include <vector>

namespace citysplat::objects {

/// What ties the looks of a long object to one another along it. Looks from behind see its back, looks from
/// ahead its front, and a smooth side that both see may slide along itself: nothing but the boxes says how
/// far apart the two ends are. One look after the other laid on the rest cannot use them well, because all
/// that see the same end hold each other where they are. Here they move together.
struct LookAlong {
    double from_box_m = 0;  ///< where the look is, along the object, from where its box has it
    /// How well surfaces that face the front and the back of the object hold the look: 1 / m².
    double held_by_front = 0, held_by_back = 0;
};

/// How boxes err: standard deviations.
struct BoxErrors {
    double shift_m;   ///< of one box
    double length_m;  ///< of the length, which all boxes of a track share
};

/// How far each look has to move along the object: least squares over what its box says, what surfaces that
/// face either end hold together, and how much is missing to the length of the boxes, where both ends were
/// seen.
std::vector<double> shifts_along(std::span<const LookAlong> looks, std::optional<double> missing_length_m,
                                 const BoxErrors& errors);

/// How a look is held, by the surface that all of them make.
LookAlong look_along(std::span<const ObjectPoint> placed, const SurfaceMap& surface);

/// The length of the boxes without the distance between the outermost surfaces in front and behind; nothing
/// when one of them was not seen over a good part of its width.
std::optional<double> missing_length(const ObjectSize& size, std::span<const std::vector<ObjectPoint>> looks);

}  // namespace citysplat::objects
