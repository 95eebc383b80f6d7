#pragma once

#include "core/cancel.hpp"
#include "model/trajectory.hpp"

#include <filesystem>
#include <functional>
#include <istream>
#include <map>
#include <memory>
#include <string>
#include <vector>

/// The tables of nuScenes as far as the LiDAR needs them. sample_data.json alone can be a gigabyte: tables
/// are read row by row, and only what is used is kept.
namespace citysplat::io {

struct NuscenesScan {
    std::string file;  ///< relative to the data set
    double time_s;     ///< end of the turn, Unix
    Pose world_from_sensor;
};

struct NuscenesScene {
    std::string name;
    std::vector<NuscenesScan> scans;  ///< by time
    Vec3d lever_arm_m{0, 0, 0};       ///< of the sensor on the car
};

/// How a table is opened; the fuzzer has its own way. Returns nothing when it is not there. Throws IoError.
using OpenTable = std::function<std::unique_ptr<std::istream>(const std::string& table)>;
/// The usual way: FOLDER/TABLE.json.
OpenTable tables_in_folder(const std::filesystem::path& folder);

/// The scenes of the tables with their sweeps of one sensor channel, e.g. "LIDAR_TOP". Scans whose scene
/// `wanted` refuses are left out early. Excerpts may lack sensor.json, then the names of the files say which
/// channel they are of, and scene.json or sample.json, then all sweeps are one scene without a name. Throws
/// InputError naming table, row and field.
std::vector<NuscenesScene> read_nuscenes_tables(const OpenTable& open, const std::string& channel,
                                                const std::function<bool(const std::string& scene)>& wanted,
                                                const CancelToken& cancel = CancelToken());

}  // namespace citysplat::io
