#include "cli/small_city.hpp"
#include "core/file.hpp"
#include "io/bag/cdr.hpp"
#include "io/bag/crc32.hpp"
#include "io/bag/ros_messages.hpp"
#include "io/bytes_le.hpp"
#include "io/points/ply_header.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <csignal>
#include <cstring>
#include <fastcdr/Cdr.h>
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace citysplat;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;

namespace {

struct Record {
    std::uint8_t opcode;
    std::span<const std::byte> content;
};

/// The records in these bytes, until one is not whole.
std::vector<Record> records_of(std::span<const std::byte> bytes) {
    std::vector<Record> records;
    while (bytes.size() >= 9) {
        const auto length = io::load_le<std::uint64_t>(bytes.data() + 1);
        if (length > bytes.size() - 9) break;
        records.push_back({std::to_integer<std::uint8_t>(bytes[0]), bytes.subspan(9, length)});
        bytes = bytes.subspan(9 + length);
    }
    return records;
}

std::string text_at(std::span<const std::byte> bytes, std::size_t at) {
    const auto length = io::load_le<std::uint32_t>(bytes.data() + at);
    return {reinterpret_cast<const char*>(bytes.data()) + at + 4, length};
}

/// Messages by topic, read from the beginning as if there were no index; chunks are not compressed.
std::map<std::string, std::vector<std::vector<char>>> messages_of(const std::vector<std::byte>& file) {
    std::map<std::uint16_t, std::string> topics;
    std::map<std::string, std::vector<std::vector<char>>> messages;
    REQUIRE(std::memcmp(file.data(), "\x89MCAP0\r\n", 8) == 0);
    for (const Record& chunk : records_of(std::span(file).subspan(8))) {
        if (chunk.opcode != 6) continue;
        REQUIRE(text_at(chunk.content, 28).empty());
        const auto inside = chunk.content.subspan(28 + 4 + 8);
        REQUIRE(inside.size() == io::load_le<std::uint64_t>(chunk.content.data() + 16));
        REQUIRE(io::crc32(inside) == io::load_le<std::uint32_t>(chunk.content.data() + 24));
        for (const Record& r : records_of(inside)) {
            const auto id = io::load_le<std::uint16_t>(r.content.data());
            if (r.opcode == 4) topics[id] = text_at(r.content, 4);
            if (r.opcode != 5) continue;
            const auto* data = reinterpret_cast<const char*>(r.content.data());
            messages[topics.at(id)].emplace_back(data + 22, data + r.content.size());
        }
    }
    return messages;
}

struct Cloud {
    std::int64_t stamp_ns = 0;
    std::string frame;
    std::vector<std::tuple<std::string, std::uint32_t, std::uint8_t>> fields;
    std::uint32_t points = 0, step = 0;
    std::vector<std::uint8_t> data;

    template <class T>
    T value(std::size_t point, const std::string& name) const {
        for (const auto& [field, offset, type] : fields)
            if (field == name) {
                T v;
                std::memcpy(&v, data.data() + point * step + offset, sizeof v);
                return v;
            }
        FAIL("no field " << name);
        return {};
    }
};

std::int64_t read_header(Cdr& cdr, std::string& frame) {
    std::int32_t seconds = 0;
    std::uint32_t nanoseconds = 0;
    cdr >> seconds >> nanoseconds >> frame;
    return std::int64_t{seconds} * 1'000'000'000 + nanoseconds;
}

Cloud read_cloud(std::vector<char>& message) {
    FastBuffer buffer(message.data(), message.size());
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    cdr.read_encapsulation();
    Cloud cloud;
    cloud.stamp_ns = read_header(cdr, cloud.frame);
    std::uint32_t height = 0, fields = 0, row = 0;
    cdr >> height >> cloud.points >> fields;
    for (std::uint32_t i = 0; i < fields; ++i) {
        std::string name;
        std::uint32_t offset = 0, count = 0;
        std::uint8_t type = 0;
        cdr >> name >> offset >> type >> count;
        CHECK(count == 1);
        cloud.fields.emplace_back(name, offset, type);
    }
    bool big = true, dense = false;
    cdr >> big >> cloud.step >> row >> cloud.data >> dense;
    CHECK(height == 1);
    CHECK_FALSE(big);
    CHECK(dense);
    CHECK(row == cloud.points * cloud.step);
    CHECK(cloud.data.size() == row);
    CHECK(cdr.getSerializedDataLength() == message.size());
    return cloud;
}

/// One column of a PLY file of simulate, as its bits.
template <class T>
std::vector<T> ply_column(const std::filesystem::path& path, const std::string& name) {
    const File file(path, File::Mode::read);
    const io::PlyHeader header = io::read_ply_header(file);
    const io::PlyElement& vertex = header.elements.at(0);
    for (const io::Column& column : vertex.properties) {
        if (column.name != name) continue;
        REQUIRE(io::bytes_of(column.type) == sizeof(T));
        const auto bytes = read_file(path);
        std::vector<T> values;
        for (std::size_t i = 0; i < vertex.count; ++i)
            values.push_back(io::load_le<T>(bytes.data() + header.bytes + i * vertex.bytes + column.at));
        return values;
    }
    FAIL("no column " << name << " in " << path);
    return {};
}

/// Starts citysplat, and kills it when that file has more bytes.
void kill_once_larger(std::vector<std::string> arguments, const std::filesystem::path& file,
                      std::uint64_t bytes) {
    arguments.insert(arguments.begin(), test::program());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    REQUIRE(child > 0);
    std::error_code error;
    for (int i = 0; i < 10'000; ++i) {
        const std::uint64_t size = std::filesystem::file_size(file, error);
        if (!error && size > bytes) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
}

std::vector<std::string> simulate(const test::SmallCity& city, const std::string& out,
                                  std::vector<std::string> more) {
    std::vector<std::string> arguments{"simulate", city.city, "--trajectory", city.trajectory,
                                       "--sensor", "vlp-16",  "--out",        city.dir / out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

}  // namespace

TEST_CASE("libfastcdr reads the messages of a bag, and they are those of the PLY files") {
    const test::SmallCity city;
    test::run_json(simulate(city, "bag", {"--format", "rosbag2", "--to", "302400.4"}));
    test::run_json(simulate(city, "ply", {"--format", "ply", "--frame", "firing", "--to", "302400.4"}));
    const auto file = read_file(city.dir / "bag/bag_0.mcap");
    auto messages = messages_of(file);
    auto& clouds = messages.at("/vlp_16/points");
    REQUIRE(clouds.size() >= 4);
    for (std::size_t scan = 0; scan < clouds.size(); ++scan) {
        const Cloud cloud = read_cloud(clouds[scan]);
        CHECK(cloud.frame == "vlp_16");
        const auto path = city.dir / ("ply/scans/00000" + std::to_string(scan) + ".ply");
        const auto x = ply_column<double>(path, "x"), z = ply_column<double>(path, "z");
        const auto intensity = ply_column<std::uint16_t>(path, "intensity"),
                   beam = ply_column<std::uint16_t>(path, "beam");
        const auto time = ply_column<float>(path, "time_offset");
        REQUIRE(cloud.points == x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            REQUIRE(cloud.value<float>(i, "x") == static_cast<float>(x[i]));
            REQUIRE(cloud.value<float>(i, "z") == static_cast<float>(z[i]));
            REQUIRE(cloud.value<float>(i, "intensity") == static_cast<float>(intensity[i]) * (1.0f / 257.0f));
            REQUIRE(cloud.value<std::uint16_t>(i, "ring") == beam[i]);
            REQUIRE(cloud.value<float>(i, "time") == time[i]);
        }
    }
    for (auto& message : messages.at("/odom")) {
        FastBuffer buffer(message.data(), message.size());
        Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
        cdr.read_encapsulation();
        std::string frame, child;
        read_header(cdr, frame);
        std::array<double, 7> pose{};
        std::array<double, 36> covariance{};
        cdr >> child >> pose >> covariance;
        std::array<double, 6> motion{};
        cdr >> motion >> covariance;
        CHECK(frame == "map");
        CHECK(child == "base_link");
        CHECK(pose[3] * pose[3] + pose[4] * pose[4] + pose[5] * pose[5] + pose[6] * pose[6] == Approx(1));
        CHECK(std::abs(motion[0]) < 30);
        CHECK(cdr.getSerializedDataLength() == message.size());
    }
}

TEST_CASE("a killed run leaves a bag that can be read to its last whole chunk") {
    const test::SmallCity city;
    const auto part = city.dir / "bag/bag_0.mcap.part";
    auto arguments = simulate(city, "bag", {"--format", "rosbag2", "--rate", "1000"});
    arguments.insert(arguments.begin(), "-q");
    kill_once_larger(arguments, part, 3'000'000);
    REQUIRE(std::filesystem::exists(part));
    CHECK_FALSE(std::filesystem::exists(city.dir / "bag/bag_0.mcap"));
    CHECK_FALSE(std::filesystem::exists(city.dir / "bag/metadata.yaml"));
    auto messages = messages_of(read_file(part));
    auto& clouds = messages.at("/vlp_16/points");
    REQUIRE(clouds.size() > 3);
    CHECK(read_cloud(clouds.back()).points > 100);
    CHECK(messages.at("/tf").size() > 10);
    // The next run takes the place without being asked.
    test::run_json(simulate(city, "bag", {"--format", "rosbag2", "--to", "302400.2"}));
    CHECK_FALSE(std::filesystem::exists(part));
    CHECK(std::filesystem::exists(city.dir / "bag/bag_0.mcap"));
}
