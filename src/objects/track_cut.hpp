#pragma once

#include "core/cancel.hpp"
#include "objects/object_points.hpp"
#include "objects/scan_inputs.hpp"

#include <span>
#include <vector>

namespace citysplat::objects {

/// Boxes are cut with so much around them: they err by as much.
inline constexpr double kBoxMargin_m = 0.10;

/// The points of each track: those inside of its box, grown by kBoxMargin_m, where the box was at the time of
/// each point. A look ends where nothing of the object was seen for 25 ms, and after 100 ms. Ground is left
/// out: points of a ground class, or, where labels do not say, what lies less than 8 cm above a plane fitted
/// around the box. So are points of classes that are rare among the points of the object. The result does
/// not depend on threads or on the order of files and points.
std::vector<ObjectCut> cut_tracks(const ScanInputs& scans, std::span<const Track> tracks,
                                  const CancelToken& cancel);

}  // namespace citysplat::objects
