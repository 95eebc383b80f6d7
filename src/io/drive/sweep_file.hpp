#pragma once

#include "io/point_file.hpp"

#include <memory>
#include <string>

namespace citysplat::io {

/// A record nearer than this to the sensor is a ray that met nothing: no sensor measures so close, and
/// several formats write zeros.
inline constexpr double kNoReturn_m = 0.1;

/// The points of one scan of a drive in the world, each with its own time and the place of the sensor at that
/// time; those that the mask leaves out are counted. Records at the sensor itself count as `no_return`; where
/// the sweep knows its beams they become empty rays. Throws InputError when the sweep makes no sense.
std::unique_ptr<PointFile> in_the_world(std::unique_ptr<PointFile> scan, const ReadOptions& options,
                                        const std::string& file_name);

/// A cloud that says itself where its sensor was, without what is too near or too far from it. Throws
/// UsageError when the mask asks for more, InputError when the cloud does not say.
std::unique_ptr<PointFile> without_masked(std::unique_ptr<PointFile> cloud, const SensorMask& mask,
                                          const std::string& file_name);

}  // namespace citysplat::io
