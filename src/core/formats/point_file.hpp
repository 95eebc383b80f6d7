#pragma once

#include "core/point.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace citysplat {

struct Bounds {
    Vec3d min{0, 0, 0}, max{0, 0, 0};
};

/// What the header of a point file says, after it has been checked against the file.
struct PointFileInfo {
    std::string format;  ///< "LAS 1.4, point format 6", "PLY binary_little_endian", …
    std::uint64_t points = 0;
    Bounds bounds;  ///< as the header claims; `bounds_known` false where it does not say
    bool bounds_known = false;
    std::string crs;  ///< WKT or "EPSG:n"; empty when the file does not say
    double metres_per_unit = 1.0;
    bool has_gps_time = false, has_intensity = false, has_label = false, has_sensor = false;
    std::vector<std::string> notes;  ///< oddities worth a line to the user
};

/// A point file opened for reading. Points come in blocks; blocks are independent of each other, so that any
/// number of threads may read different blocks of one PointFile at once. Block order × order within a block
/// is file order.
class PointFile {
  public:
    virtual ~PointFile() = default;
    virtual const PointFileInfo& info() const = 0;
    virtual std::size_t block_count() const = 0;
    /// Replaces `out`. Throws InputError naming file, record and field; IoError when the system fails.
    virtual void read_block(std::size_t index, PointBatch& out) const = 0;
};

/// Opens any supported format by content first, name second. Throws InputError or IoError.
std::unique_ptr<PointFile> open_point_file(const std::filesystem::path& path);

}  // namespace citysplat
