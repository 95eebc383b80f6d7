#pragma once

#include "core/file.hpp"
#include "io/point_file.hpp"

#include <memory>

namespace citysplat::io {

/// A KITTI scan: little-endian float32 x, y, z, reflectance (0…1), in the frame of the sensor.
std::unique_ptr<PointFile> open_kitti_scan(File file, const ReadOptions& options);

/// A sweep of nuScenes (.pcd.bin): the same, then the number of the ring; intensity 0…255.
std::unique_ptr<PointFile> open_nuscenes_scan(File file, const ReadOptions& options);

/// Points of one scan moved to the world by `options.world_from_sensor`, which also becomes their sensor
/// position; `options.scan_time_s` becomes their time where they have none.
std::unique_ptr<PointFile> at_pose(std::unique_ptr<PointFile> scan, const ReadOptions& options);

}  // namespace citysplat::io
