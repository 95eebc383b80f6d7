#pragma once

#include "model/point.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace citysplat {

/// A point file being written, streamed batch by batch. Columns present in the first batch must be present in
/// all. `finish` completes the header and reports late errors; a sink destroyed without it leaves a file that
/// readers refuse.
class PointSink {
  public:
    virtual ~PointSink() = default;
    virtual void write(const PointBatch& batch) = 0;
    virtual void finish() = 0;
    virtual std::uint64_t points() const = 0;
};

struct SinkOptions {
    double scale_m = 0.0001;  ///< LAS coordinate resolution
    /// LAS coordinate offset. Default: the first point, rounded to a kilometre (height: to 0).
    std::optional<Vec3d> offset_m{};
    std::string crs{};         ///< WKT, written as a VLR or comment
    bool wide_labels = false;  ///< LAS: labels above 255 are written too, as extra bytes "label"
    std::string software = "citysplat";
};

/// LAS 1.4, point format 6. Instance and sensor position become extra bytes "instance", "sensor_x" … on the
/// resolution of the coordinates. Throws InputError when a value does not fit the format.
std::unique_ptr<PointSink> create_las(const std::filesystem::path& path, const SinkOptions& options = {});
/// PLY binary_little_endian, double coordinates; every column of the batch under its own name.
std::unique_ptr<PointSink> create_ply(const std::filesystem::path& path, const SinkOptions& options = {});

}  // namespace citysplat
