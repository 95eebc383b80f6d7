#pragma once

#include "core/point.hpp"

#include <filesystem>
#include <memory>
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
    Vec3d offset_m{0, 0, 0};  ///< LAS coordinate offset; put it near the data, on whole metres
    std::string crs;          ///< WKT, written as a VLR where the format can
    std::string software = "citysplat";
};

/// LAS 1.4, point format 6.
std::unique_ptr<PointSink> create_las(const std::filesystem::path& path, const SinkOptions& options = {});
/// PLY binary_little_endian, double coordinates.
std::unique_ptr<PointSink> create_ply(const std::filesystem::path& path, const SinkOptions& options = {});

}  // namespace citysplat
