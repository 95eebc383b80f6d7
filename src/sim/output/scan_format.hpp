#pragma once

#include "sim/scan/scan.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::sim {

/// What the points of a cloud file have in common.
struct CloudLayout {
    bool sensor_frame = false;  ///< coordinates in the sensor's frame when the scan began, else world
    bool keep_all = false;      ///< rays without return too, with their status
    Vec3d offset_m{0, 0, 0};    ///< LAS: added to stored coordinates
    std::string crs;            ///< WKT, where the format can say it
};

/// What a header must know about the points behind it.
struct CloudSummary {
    std::uint64_t points = 0;
    Vec3d min{0, 0, 0}, max{0, 0, 0};

    void add(Vec3d p);
};

/// A file format for returns: a header of a size that does not depend on the points (so that it can be
/// written again at the end) and records one after the other. Stateless; safe from several threads.
class ScanFormat {
  public:
    virtual ~ScanFormat() = default;
    virtual std::string_view extension() const = 0;
    virtual std::string header(const CloudLayout& layout, const CloudSummary& summary) const = 0;
    /// Appends the records of a scan to `out` and counts them in `summary`.
    virtual void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                        CloudSummary& summary) const = 0;
};

std::unique_ptr<ScanFormat> make_las_format();
std::unique_ptr<ScanFormat> make_ply_format();
std::unique_ptr<ScanFormat> make_pcd_format();
std::unique_ptr<ScanFormat> make_kitti_format();        ///< velodyne/*.bin
std::unique_ptr<ScanFormat> make_kitti_label_format();  ///< labels/*.label, parallel to it
std::unique_ptr<ScanFormat> make_xyz_format();

/// Position of a return as the layout wants it.
Vec3d position_in(const CloudLayout& layout, const Scan& scan, const Return& r);

/// Calls f(ray, return, position) for the returns that belong into a file.
template <class F>
void for_each_point(const Scan& scan, const CloudLayout& layout, F f) {
    for (std::uint32_t ray = 0; ray < scan.returns.size(); ++ray) {
        const Return& r = scan.returns[ray];
        if (layout.keep_all || r.status == RayStatus::hit) f(ray, r, position_in(layout, scan, r));
    }
}

/// Appends the bytes of a number.
template <class T>
void put(std::byte*& at, T value) {
    __builtin_memcpy(at, &value, sizeof value);
    at += sizeof value;
}

}  // namespace citysplat::sim
