#pragma once

#include "io/write/cloud_header.hpp"
#include "io/write/field.hpp"
#include "sim/scan/scan.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::sim {

/// Whose coordinates a file has.
enum class CloudFrame {
    world,
    sensor,  ///< where the sensor was when the scan began: motion is compensated
    firing   ///< where it was when the pulse was fired: as a sensor itself reports it
};

/// What the points of a cloud file have in common.
struct CloudLayout {
    CloudFrame frame = CloudFrame::world;
    bool by_pulse = false;    ///< the second return of a pulse follows the first one
    bool keep_all = false;    ///< rays without return too, with their status
    bool recorded = false;    ///< kRecordedFields too, in all formats but KITTI
    bool several = false;     ///< pulses have several returns: kNumberFields too, in all formats but KITTI
    Vec3d offset_m{0, 0, 0};  ///< LAS: added to stored coordinates
    std::string crs;          ///< WKT, where the format can say it
};

/// Some of the returns of a scan.
struct ScanPiece {
    const Scan& scan;
    std::size_t begin, end;
};

/// A file format for returns: a header of a size that does not depend on the points (so that it can be
/// written again at the end) and records one after the other. Stateless; safe from several threads.
class ScanFormat {
  public:
    virtual ~ScanFormat() = default;
    virtual std::string_view extension() const = 0;
    virtual std::string header(const CloudLayout& layout, const io::CloudSummary& summary) const = 0;
    /// No record is longer.
    virtual std::size_t most_record_bytes() const = 0;
    /// Puts the records of a piece at `at`, moves it behind them and counts them in `summary`. Requires room
    /// for the longest record of every return.
    virtual void append(const ScanPiece& piece, const CloudLayout& layout, std::byte*& at,
                        io::CloudSummary& summary) const = 0;
};

/// The columns of ply and pcd, in the order of a record: all that there is to know about a return.
std::vector<io::Field> point_fields(const CloudLayout& layout);

/// las, ply, pcd, kitti (velodyne/*.bin), kitti labels (labels/*.label, parallel to it) or xyz; nullptr for
/// any other name.
std::unique_ptr<ScanFormat> make_scan_format(std::string_view name);

/// Points of a bag: velodyne, ouster, ouster-u8, autoware, livox or full; nullptr for any other name. Their
/// header is empty: it is that of the message.
std::unique_ptr<ScanFormat> make_bag_format(std::string_view name);
/// The fields of these points, one behind the other; none for livox, which has a message of its own.
std::vector<io::Field> bag_fields(std::string_view name, const CloudLayout& layout);

}  // namespace citysplat::sim
