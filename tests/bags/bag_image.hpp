#pragma once

#include "core/file.hpp"
#include "io/bag/mcap_writer.hpp"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <vector>

/// A small bag as somebody else's recorder could have written it: three clouds of ten points, tf and
/// odometry.
namespace citysplat::test {

inline void write_bytes(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
    FileWriter out(path);
    out.write(bytes);
    out.finish();
}

struct BagImage {
    io::ChunkCompression compression = io::ChunkCompression::none;
    bool with_tf = true, with_odometry = false;
    /// Of the clouds, before and behind those of the poses (10.0 to 10.4 s).
    std::vector<double> cloud_times_s{10.0, 10.1, 10.2};
    std::vector<std::pair<std::string, std::string>> facts{};

    void write(const std::filesystem::path& path) const {
        using namespace io;
        std::vector<BagChannel> channels{{1, "/lidar/points", RosType::point_cloud},
                                         {2, "/tf", RosType::transforms},
                                         {3, "/tf_static", RosType::transforms, true},
                                         {4, "/odom", RosType::odometry}};
        const auto ns = [](double s) { return static_cast<StampNs>(s * 1e9 + 0.5); };
        McapWriter writer(path, facts);
        McapChunk poses;
        for (std::size_t i = 1; i < channels.size(); ++i) poses.add_channel(channels[i]);
        const NamedPose mount{{ns(10), "base_link"}, "lidar", {{0, 0, 2}, {}}};
        poses.begin_message(channels[2], 0, ns(10));
        put_transforms(poses.content(), std::span(&mount, 1));
        poses.end_message();
        for (std::uint32_t i = 0; i <= 4; ++i) {
            const double t = 10 + 0.1 * i;
            const NamedPose pose{{ns(t), "map"}, "base_link", {{100.0 + i, 0, 0}, {}}};
            if (with_tf) {
                poses.begin_message(channels[1], i, ns(t));
                put_transforms(poses.content(), std::span(&pose, 1));
                poses.end_message();
            }
            if (with_odometry) {
                poses.begin_message(channels[3], i, ns(t));
                put_odometry(poses.content(), pose, {{10, 0, 0}, {0, 0, 0}});
                poses.end_message();
            }
        }
        poses.seal(compression);
        writer.append(poses);
        const std::vector<Field> fields{
            {"x", FieldType::f32, "", ""},    {"y", FieldType::f32, "", ""},
            {"z", FieldType::f32, "", ""},    {"intensity", FieldType::f32, "", ""},
            {"ring", FieldType::u16, "", ""}, {"time", FieldType::f32, "", ""}};
        std::uint32_t scan = 0;
        for (const double t : cloud_times_s) {
            McapChunk chunk;
            chunk.add_channel(channels[0]);
            chunk.begin_message(channels[0], scan++, ns(t + 0.1));
            begin_cloud(chunk.content(), {{ns(t), "lidar"}, fields, 10});
            for (int i = 0; i < 10; ++i) {
                std::byte record[22];
                std::byte* at = record;
                for (const float v :
                     {1.0f + static_cast<float>(i), 2.0f, 3.0f, 25.0f * static_cast<float>(i)})
                    put(at, v);
                put(at, static_cast<std::uint16_t>(i));
                put(at, 0.01f * static_cast<float>(i));
                chunk.content().insert(chunk.content().end(), record, at);
            }
            end_cloud(chunk.content());
            chunk.end_message();
            chunk.seal(compression);
            writer.append(chunk);
        }
        writer.finish(channels);
    }
};

}  // namespace citysplat::test
