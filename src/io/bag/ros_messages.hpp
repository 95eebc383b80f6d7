#pragma once

#include "io/bag/cdr.hpp"
#include "io/write/field.hpp"
#include "model/trajectory.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The ROS 2 messages that bags of scans hold.
namespace citysplat::io {

enum class RosType : std::uint8_t { point_cloud, transforms, odometry, imu, livox };
inline constexpr RosType kRosTypes[]{RosType::point_cloud, RosType::transforms, RosType::odometry,
                                     RosType::imu, RosType::livox};

/// "sensor_msgs/msg/PointCloud2".
std::string_view name_of(RosType type);
/// The definition as MCAP wants it (encoding "ros2msg"): the message, then all types that it is made of.
std::string definition_of(RosType type);

/// Nanoseconds since the epoch of the bag. Requires that the seconds fit 31 bits.
using StampNs = std::int64_t;
inline constexpr StampNs kMostStampNs = (StampNs{1} << 31) * 1'000'000'000 - 1;

/// What sensor_msgs/PointField calls a type.
constexpr std::uint8_t ros_type(FieldType type) {
    constexpr std::uint8_t kTypes[]{2, 4, 6, 5, 7, 8};
    return kTypes[static_cast<std::size_t>(type)];
}

struct RosHeader {
    StampNs stamp_ns;
    std::string_view frame;
};

/// Everything of a PointCloud2 but its points, which follow with their number of bytes; end_cloud() is behind
/// them. The points of a bag are one row, dense, little endian.
struct CloudHead {
    RosHeader header;
    std::span<const Field> fields;
    std::uint32_t points;
};
void begin_cloud(std::vector<std::byte>& out, const CloudHead& head);
void end_cloud(std::vector<std::byte>& out);
/// Everything of a CustomMsg before its points. Each of them takes kLivoxPointBytes, the last one a byte
/// less.
void begin_livox(std::vector<std::byte>& out, const RosHeader& header, std::uint32_t points);
inline constexpr std::size_t kLivoxPointBytes = 20;

struct NamedPose {
    RosHeader header;
    std::string_view child_frame;
    Pose parent_from_child;
};
void put_transforms(std::vector<std::byte>& out, std::span<const NamedPose> transforms);

struct Motion {
    Vec3d velocity_m_s, turn_rad_s;  ///< in the frame of the body
};
void put_odometry(std::vector<std::byte>& out, const NamedPose& pose, const Motion& motion);

struct ImuReading {
    Quaternion rotation;  ///< of the body in the world
    Vec3d turn_rad_s, force_m_s2;
    double turn_variance, force_variance;
};
void put_imu(std::vector<std::byte>& out, const RosHeader& header, const ImuReading& reading);

}  // namespace citysplat::io
