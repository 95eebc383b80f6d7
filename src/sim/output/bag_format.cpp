#include "core/math/math_hd.hpp"
#include "sim/output/scan_format_of.hpp"

/// How the points of a bag are laid out. Readers of PointCloud2 look for fields by name and type (PCL) or
/// compare them all (Autoware); docs/ros.md says who wants which.
namespace citysplat::sim {

namespace {

using io::Field;
using io::FieldOf;

float x_of(const ReturnPoint& p) { return static_cast<float>(p.position.x); }
float y_of(const ReturnPoint& p) { return static_cast<float>(p.position.y); }
float z_of(const ReturnPoint& p) { return static_cast<float>(p.position.z); }
/// From 0 to 255, with the fraction that sixteen bits have more.
float brightness(const ReturnPoint& p) { return static_cast<float>(p.r.intensity) * (1.0f / 257.0f); }
std::uint8_t brightness_byte(const ReturnPoint& p) {
    return static_cast<std::uint8_t>((p.r.intensity + 128u) / 257u);
}
/// Since the scan began.
std::uint32_t nanoseconds(const ReturnPoint& p) {
    return static_cast<std::uint32_t>(static_cast<double>(p.r.time_s) * 1e9 + 0.5);
}
std::uint16_t ring(const ReturnPoint& p) { return p.r.beam; }
std::uint8_t ring_byte(const ReturnPoint& p) { return static_cast<std::uint8_t>(p.r.beam); }
std::uint16_t nothing(const ReturnPoint&) { return 0; }

/// As velodyne_pointcloud has them.
constexpr auto kVelodyneFields = io::field_table<ReturnPoint>(
    FieldOf{"x", "m", "", x_of}, FieldOf{"y", "m", "", y_of}, FieldOf{"z", "m", "", z_of},
    FieldOf{"intensity", "", "0 to 255", brightness}, FieldOf{"ring", "", "laser", ring},
    FieldOf{"time", "s", "since the scan began", [](const ReturnPoint& p) { return p.r.time_s; }});

std::uint16_t reflectivity(const ReturnPoint& p) { return brightness_byte(p); }
float signal(const ReturnPoint& p) { return static_cast<float>(p.r.intensity); }
std::uint32_t millimetres(const ReturnPoint& p) {
    return static_cast<std::uint32_t>(static_cast<double>(p.r.range_m) * 1000 + 0.5);
}

/// As ouster-ros has them today, and as it had them when LIO-SAM and FAST-LIO were written.
constexpr auto kOusterFields = io::field_table<ReturnPoint>(
    FieldOf{"x", "m", "", x_of}, FieldOf{"y", "m", "", y_of}, FieldOf{"z", "m", "", z_of},
    FieldOf{"intensity", "", "65535: the full scale", signal},
    FieldOf{"t", "ns", "since the scan began", nanoseconds},
    FieldOf{"reflectivity", "", "0 to 255", reflectivity}, FieldOf{"ring", "", "laser", ring},
    FieldOf{"ambient", "", "0", nothing}, FieldOf{"range", "mm", "measured range", millimetres});
constexpr auto kOusterByteFields = io::field_table<ReturnPoint>(
    FieldOf{"x", "m", "", x_of}, FieldOf{"y", "m", "", y_of}, FieldOf{"z", "m", "", z_of},
    FieldOf{"intensity", "", "65535: the full scale", signal},
    FieldOf{"t", "ns", "since the scan began", nanoseconds},
    FieldOf{"reflectivity", "", "0 to 255", reflectivity}, FieldOf{"ring", "", "laser", ring_byte},
    FieldOf{"noise", "", "0", nothing}, FieldOf{"ambient", "", "0", nothing},
    FieldOf{"range", "mm", "measured range", millimetres});

/// Autoware's words for the echoes of a pulse.
std::uint8_t return_type(const ReturnPoint& p) {
    constexpr std::uint8_t kSingleStrongest = 1, kDualStrongestFirst = 3, kDualStrongestLast = 4,
                           kDualWeakFirst = 5, kDualWeakLast = 6, kDualOnly = 7;
    if (p.scan.returns_per_pulse == 1) return kSingleStrongest;
    if (p.number_of_returns == 1) return kDualOnly;
    const bool strongest = static_cast<std::size_t>(&p.r - p.scan.returns.data()) < p.scan.pulses(),
               first = p.return_number == 1;
    if (strongest) return first ? kDualStrongestFirst : kDualStrongestLast;
    return first ? kDualWeakFirst : kDualWeakLast;
}
/// From 0 to 2π, from the x axis to the y axis.
float azimuth(const ReturnPoint& p) {
    const double a = exact::atan2(p.position.y, p.position.x);
    return static_cast<float>(a < 0 ? a + 2 * exact::kPi : a);
}
float elevation(const ReturnPoint& p) {
    const Vec3d v = p.position;
    return static_cast<float>(exact::atan2(v.z, std::sqrt(v.x * v.x + v.y * v.y)));
}

/// PointXYZIRCAEDT: Autoware accepts exactly these, in this order and at these places.
constexpr auto kAutowareFields = io::field_table<ReturnPoint>(
    FieldOf{"x", "m", "", x_of}, FieldOf{"y", "m", "", y_of}, FieldOf{"z", "m", "", z_of},
    FieldOf{"intensity", "", "0 to 255", brightness_byte}, FieldOf{"return_type", "", "", return_type},
    FieldOf{"channel", "", "laser", ring}, FieldOf{"azimuth", "rad", "", azimuth},
    FieldOf{"elevation", "rad", "", elevation},
    FieldOf{"distance", "m", "", [](const ReturnPoint& p) { return p.r.range_m; }},
    FieldOf{"time_stamp", "ns", "since the scan began", nanoseconds});
static_assert(kAutowareFields.kBytes == 32);

/// What no driver has: the place in the world as the simulation knows it, on the clock of the trajectory.
constexpr auto kWorldFields = io::field_table<ReturnPoint>(
    FieldOf{"world_x", "m", "", [](const ReturnPoint& p) { return p.r.position.x; }},
    FieldOf{"world_y", "m", "", [](const ReturnPoint& p) { return p.r.position.y; }},
    FieldOf{"world_z", "m", "", [](const ReturnPoint& p) { return p.r.position.z; }},
    FieldOf{"gps_time", "s", "time of the pulse", [](const ReturnPoint& p) { return p.gps_time(); }});

/// Points of livox_ros_driver2/CustomMsg, with the byte that aligns the next one.
constexpr auto kLivoxFields = io::field_table<ReturnPoint>(
    FieldOf{"offset_time", "ns", "", nanoseconds}, FieldOf{"x", "m", "", x_of}, FieldOf{"y", "m", "", y_of},
    FieldOf{"z", "m", "", z_of}, FieldOf{"reflectivity", "", "", brightness_byte},
    // Bits 4 and 5 are the number of the return; FAST-LIO drops a point whose number is not 0 or 1.
    FieldOf{"tag", "", "",
            [](const ReturnPoint& p) { return static_cast<std::uint8_t>(p.return_number << 4); }},
    FieldOf{"line", "", "", ring_byte},
    FieldOf{"padding", "", "", [](const ReturnPoint&) { return std::uint8_t{0}; }});

template <const auto& kTable>
struct BagRecord {
    static constexpr Needs kNeeds = Needs::positions;
    static constexpr std::string_view kExtension = "";
    static constexpr std::size_t kMostBytes = kTable.kBytes;
    static std::string header(const CloudLayout&, const io::CloudSummary&) { return {}; }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout&) {
        kTable.put(at, p);
        return p.position;
    }
};

struct FullRecord {
    static constexpr Needs kNeeds = Needs::all;
    static constexpr std::string_view kExtension = "";
    static constexpr std::size_t kMostBytes = kVelodyneFields.kBytes + kWorldFields.kBytes +
                                              kReturnFields.kBytes + kNumberFields.kBytes +
                                              kRecordedFields.kBytes;
    static std::string header(const CloudLayout&, const io::CloudSummary&) { return {}; }
    static Vec3d put(std::byte*& at, const ReturnPoint& p, const CloudLayout& layout) {
        kVelodyneFields.put(at, p);
        kWorldFields.put(at, p);
        kReturnFields.put(at, p);
        if (layout.several) kNumberFields.put(at, p);
        if (layout.recorded) kRecordedFields.put(at, p);
        return p.position;
    }
};

template <class Table>
void add(std::vector<Field>& all, const Table& table) {
    const auto fields = table.fields();
    all.insert(all.end(), fields.begin(), fields.end());
}

}  // namespace

std::unique_ptr<ScanFormat> make_bag_format(std::string_view name) {
    if (name == "velodyne") return std::make_unique<FormatOf<BagRecord<kVelodyneFields>>>();
    if (name == "ouster") return std::make_unique<FormatOf<BagRecord<kOusterFields>>>();
    if (name == "ouster-u8") return std::make_unique<FormatOf<BagRecord<kOusterByteFields>>>();
    if (name == "autoware") return std::make_unique<FormatOf<BagRecord<kAutowareFields>>>();
    if (name == "livox") return std::make_unique<FormatOf<BagRecord<kLivoxFields>>>();
    if (name == "full") return std::make_unique<FormatOf<FullRecord>>();
    return nullptr;
}

std::vector<Field> bag_fields(std::string_view name, const CloudLayout& layout) {
    std::vector<Field> all;
    if (name == "velodyne" || name == "full") add(all, kVelodyneFields);
    if (name == "ouster") add(all, kOusterFields);
    if (name == "ouster-u8") add(all, kOusterByteFields);
    if (name == "autoware") add(all, kAutowareFields);
    if (name != "full") return all;
    add(all, kWorldFields);
    add(all, kReturnFields);
    if (layout.several) add(all, kNumberFields);
    if (layout.recorded) add(all, kRecordedFields);
    return all;
}

}  // namespace citysplat::sim
