#include "io/bag/ros_messages.hpp"

#include <algorithm>
#include <utility>

namespace citysplat::io {

namespace {

/// Members of the types that messages are made of.
constexpr std::pair<std::string_view, std::string_view> kParts[]{
    {"builtin_interfaces/Time", "int32 sec\nuint32 nanosec\n"},
    {"std_msgs/Header", "builtin_interfaces/Time stamp\nstring frame_id\n"},
    {"sensor_msgs/PointField",
     "uint8 INT8=1\nuint8 UINT8=2\nuint8 INT16=3\nuint8 UINT16=4\nuint8 INT32=5\nuint8 UINT32=6\n"
     "uint8 FLOAT32=7\nuint8 FLOAT64=8\nstring name\nuint32 offset\nuint8 datatype\nuint32 count\n"},
    {"geometry_msgs/Vector3", "float64 x\nfloat64 y\nfloat64 z\n"},
    {"geometry_msgs/Point", "float64 x\nfloat64 y\nfloat64 z\n"},
    {"geometry_msgs/Quaternion", "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"},
    {"geometry_msgs/Pose", "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n"},
    {"geometry_msgs/PoseWithCovariance", "geometry_msgs/Pose pose\nfloat64[36] covariance\n"},
    {"geometry_msgs/Twist", "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n"},
    {"geometry_msgs/TwistWithCovariance", "geometry_msgs/Twist twist\nfloat64[36] covariance\n"},
    {"geometry_msgs/Transform", "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation\n"},
    {"geometry_msgs/TransformStamped",
     "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform\n"},
    {"livox_ros_driver2/CustomPoint",
     "uint32 offset_time\nfloat32 x\nfloat32 y\nfloat32 z\nuint8 reflectivity\nuint8 tag\nuint8 line\n"},
};

struct Message {
    std::string_view name, members;
};
constexpr Message message_of(RosType type) {
    switch (type) {
        case RosType::point_cloud:
            return {"sensor_msgs/msg/PointCloud2",
                    "std_msgs/Header header\nuint32 height\nuint32 width\nsensor_msgs/PointField[] fields\n"
                    "bool is_bigendian\nuint32 point_step\nuint32 row_step\nuint8[] data\nbool is_dense\n"};
        case RosType::transforms:
            return {"tf2_msgs/msg/TFMessage", "geometry_msgs/TransformStamped[] transforms\n"};
        case RosType::odometry:
            return {"nav_msgs/msg/Odometry",
                    "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n"
                    "geometry_msgs/TwistWithCovariance twist\n"};
        case RosType::imu:
            return {"sensor_msgs/msg/Imu",
                    "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n"
                    "float64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n"
                    "float64[9] angular_velocity_covariance\ngeometry_msgs/Vector3 linear_acceleration\n"
                    "float64[9] linear_acceleration_covariance\n"};
        case RosType::livox:
            break;
    }
    return {"livox_ros_driver2/msg/CustomMsg",
            "std_msgs/Header header\nuint64 timebase\nuint32 point_num\nuint8 lidar_id\nuint8[3] rsvd\n"
            "livox_ros_driver2/CustomPoint[] points\n"};
}

/// Appends the parts that `members` names and that are not in `seen` yet, and theirs.
void add_parts(std::string_view members, std::vector<std::string_view>& seen, std::string& text) {
    for (const auto& [name, own] : kParts) {
        const std::size_t at = members.find(name);
        // "geometry_msgs/Pose" is the beginning of "geometry_msgs/PoseWithCovariance" as well.
        const bool named = at != std::string_view::npos &&
                           (members[at + name.size()] == ' ' || members[at + name.size()] == '[');
        if (!named || std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
        seen.push_back(name);
        text += std::string(80, '=') + "\nMSG: " + std::string(name) + "\n" + std::string(own);
        add_parts(own, seen, text);
    }
}

void put_header(CdrWriter& cdr, const RosHeader& header) {
    cdr.number(static_cast<std::int32_t>(header.stamp_ns / 1'000'000'000));
    cdr.number(static_cast<std::uint32_t>(header.stamp_ns % 1'000'000'000));
    cdr.text(header.frame);
}

void put_vector(CdrWriter& cdr, Vec3d v) { cdr.numbers(v.x, v.y, v.z); }
void put_rotation(CdrWriter& cdr, const Quaternion& q) { cdr.numbers(q.x, q.y, q.z, q.w); }
/// A square matrix with one value on its diagonal.
void put_covariance(CdrWriter& cdr, std::size_t size, double variance) {
    for (std::size_t i = 0; i < size * size; ++i) cdr.number(i % (size + 1) == 0 ? variance : 0.0);
}

}  // namespace

std::string_view name_of(RosType type) { return message_of(type).name; }

std::string definition_of(RosType type) {
    std::string text(message_of(type).members);
    std::vector<std::string_view> seen;
    add_parts(message_of(type).members, seen, text);
    return text;
}

void begin_cloud(std::vector<std::byte>& out, const CloudHead& head) {
    CdrWriter cdr(out);
    put_header(cdr, head.header);
    cdr.numbers(std::uint32_t{1}, head.points, static_cast<std::uint32_t>(head.fields.size()));
    std::uint32_t step = 0;
    for (const Field& field : head.fields) {
        cdr.text(field.name);
        cdr.numbers(step, ros_type(field.type), std::uint32_t{1});
        step += static_cast<std::uint32_t>(facts_of(field.type).bytes);
    }
    const std::uint32_t bytes = step * head.points;
    cdr.numbers(std::uint8_t{0}, step, bytes, bytes);
}
void end_cloud(std::vector<std::byte>& out) { out.push_back(std::byte{1}); }

void begin_livox(std::vector<std::byte>& out, const RosHeader& header, std::uint32_t points) {
    CdrWriter cdr(out);
    put_header(cdr, header);
    cdr.numbers(static_cast<std::uint64_t>(header.stamp_ns), points);
    for (int i = 0; i < 4; ++i) cdr.number(std::uint8_t{0});  // lidar_id and what is reserved
    cdr.number(points);
}

void put_transforms(std::vector<std::byte>& out, std::span<const NamedPose> transforms) {
    CdrWriter cdr(out);
    cdr.number(static_cast<std::uint32_t>(transforms.size()));
    for (const NamedPose& t : transforms) {
        cdr.align(4);
        put_header(cdr, t.header);
        cdr.text(t.child_frame);
        put_vector(cdr, t.parent_from_child.translation);
        put_rotation(cdr, t.parent_from_child.rotation);
    }
}

void put_odometry(std::vector<std::byte>& out, const NamedPose& pose, const Motion& motion) {
    CdrWriter cdr(out);
    put_header(cdr, pose.header);
    cdr.text(pose.child_frame);
    put_vector(cdr, pose.parent_from_child.translation);
    put_rotation(cdr, pose.parent_from_child.rotation);
    put_covariance(cdr, 6, 0);
    put_vector(cdr, motion.velocity_m_s);
    put_vector(cdr, motion.turn_rad_s);
    put_covariance(cdr, 6, 0);
}

void put_imu(std::vector<std::byte>& out, const RosHeader& header, const ImuReading& reading) {
    CdrWriter cdr(out);
    put_header(cdr, header);
    put_rotation(cdr, reading.rotation);
    put_covariance(cdr, 3, 0);
    put_vector(cdr, reading.turn_rad_s);
    put_covariance(cdr, 3, reading.turn_variance);
    put_vector(cdr, reading.force_m_s2);
    put_covariance(cdr, 3, reading.force_variance);
}

}  // namespace citysplat::io
