#include "core/error.hpp"
#include "core/file.hpp"
#include "io/input/open_point_file.hpp"
#include "io/points/lzf.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace citysplat;
using Catch::Contains;

namespace {

const float kNanf = std::numeric_limits<float>::quiet_NaN();

std::filesystem::path write(const std::filesystem::path& path, std::string_view content) {
    FileWriter out(path);
    out.text(content);
    out.finish();
    return path;
}

template <class T>
void put(std::string& to, T value, bool big_endian = false) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    if (big_endian) std::reverse(raw, raw + sizeof value);
    to.append(raw, sizeof value);
}

PointBatch read_one(const std::filesystem::path& path, const ReadOptions& options = {}) {
    PointBatch b;
    const auto file = open_point_file(path, options);
    REQUIRE(file->block_count() == 1);
    file->read_block(0, b);
    b.check();
    return b;
}

std::string message_of(const std::filesystem::path& path, const ReadOptions& options = {}) {
    try {
        PointBatch b;
        const auto file = open_point_file(path, options);
        for (std::size_t i = 0; i < file->block_count(); ++i) file->read_block(i, b);
    } catch (const Error& e) {
        return e.what();
    }
    return "(no error)";
}

/// LZF without matches: literal runs of up to 32 bytes.
std::string lzf_literals(std::string_view plain) {
    std::string out;
    for (std::size_t at = 0; at < plain.size(); at += 32) {
        const std::string_view run = plain.substr(at, 32);
        out += static_cast<char>(run.size() - 1);
        out += run;
    }
    return out;
}

std::string pcd_header(const std::string& fields, const std::string& sizes, const std::string& types,
                       int width, const std::string& data) {
    return "# .PCD v0.7\nVERSION 0.7\nFIELDS " + fields + "\nSIZE " + sizes + "\nTYPE " + types + "\nWIDTH " +
           std::to_string(width) + "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS " + std::to_string(width) +
           "\nDATA " + data + "\n";
}

}  // namespace

TEST_CASE("PLY: ascii and both byte orders give the same points, whatever the order of properties") {
    test::TempDir dir;
    const std::string properties =
        "element vertex 2\nproperty uchar class\nproperty float z\nproperty double x\nproperty short "
        "extra\nproperty double y\n"
        "property float reflectance\nproperty uint label\nproperty double x_origin\nproperty double "
        "y_origin\nproperty double z_origin\n"
        "element face 1\nproperty list uchar int vertex_indices\nend_header\n";
    write(dir / "a.ply",
          "ply\r\nformat ascii 1.0\r\n" + properties +
              "5 1.5 650000.25 -7 6860000.5 0.5 70001 1 2 3\n6 2.5 650001 -8 6860001 1 3 4 5 6\n3 0 1 1\n");
    for (const bool big : {false, true}) {
        std::string binary =
            "ply\nformat binary_" + std::string(big ? "big" : "little") + "_endian 1.0\n" + properties;
        for (int i = 0; i < 2; ++i) {
            put<std::uint8_t>(binary, static_cast<std::uint8_t>(5 + i), big);
            put(binary, i ? 2.5f : 1.5f, big);
            put(binary, i ? 650001.0 : 650000.25, big);
            put<std::int16_t>(binary, static_cast<std::int16_t>(-7 - i), big);
            put(binary, i ? 6860001.0 : 6860000.5, big);
            put(binary, i ? 1.0f : 0.5f, big);
            put<std::uint32_t>(binary, i ? 3 : 70001, big);
            for (int k = 0; k < 3; ++k) put(binary, 1.0 + k + 3 * i, big);
        }
        write(dir / (big ? "big.ply" : "little.ply"), binary);
    }
    for (const char* name : {"a.ply", "little.ply", "big.ply"}) {
        INFO(name);
        const PointBatch b = read_one(dir / name);
        CHECK(b.x == std::vector<double>{650000.25, 650001});
        CHECK(b.y == std::vector<double>{6860000.5, 6860001});
        CHECK(b.z == std::vector<double>{1.5, 2.5});
        CHECK(b.label == std::vector<std::uint16_t>{5, 6});  // "class" is the class, "label" the object
        CHECK(b.instance == std::vector<std::uint16_t>{70001 & 0xffff, 3});
        CHECK(b.intensity == std::vector<std::uint16_t>{32768, 65535});
        CHECK(b.sensor[1].z == 6);
    }
}

TEST_CASE("PLY: names of common data sets are recognised") {
    test::TempDir dir;
    const auto columns = [&](const std::string& properties, const std::string& row) {
        return read_one(write(dir / "a.ply", "ply\nformat ascii 1.0\nelement vertex 1\n" + properties +
                                                 "end_header\n" + row + "\n"));
    };
    const std::string xyz = "property float x\nproperty float y\nproperty float z\n";
    const PointBatch toronto = columns(
        xyz + "property float scalar_Intensity\nproperty float scalar_GPSTime\nproperty float scalar_Label\n",
        "1 2 3 200 5 4");
    CHECK(toronto.label[0] == 4);
    CHECK(toronto.gps_time[0] == 5);
    CHECK(toronto.intensity[0] == 51400);  // 200 of 255
    const PointBatch carla = columns(
        xyz +
            "property float x_lidar_position\nproperty float y_lidar_position\nproperty float "
            "z_lidar_position\nproperty float timestamp\nproperty int semantic\nproperty int instance\n",
        "1 2 3 4 5 6 7 8 9");
    CHECK(carla.sensor[0].y == 5);
    CHECK(carla.label[0] == 8);
    CHECK(carla.instance[0] == 9);
    const PointBatch offset = columns("comment offset Pos 649000 6840000 0\n" + xyz, "1 2 3");
    CHECK(offset.y[0] == 6840002);
}

TEST_CASE("damaged PLY files are refused by line or point") {
    test::TempDir dir;
    const auto ply = [&](const std::string& content) { return message_of(write(dir / "a.ply", content)); };
    const std::string xyz = "property float x\nproperty float y\nproperty float z\n",
                      ascii = "ply\nformat ascii 1.0\n";
    CHECK_THAT(ply("plx\n"), Contains("not a PLY file"));
    CHECK_THAT(ply(ascii + "element vertex 1\n" + xyz), Contains("end_header"));
    CHECK_THAT(ply("ply\nformat text 1.0\nend_header\n"), Contains("line 2") && Contains("\"text\""));
    CHECK_THAT(ply("ply\nelement vertex 0\n" + xyz + "end_header\n"), Contains("format"));
    CHECK_THAT(ply(ascii + "element vertex abc\n"), Contains("line 3") && Contains("abc"));
    CHECK_THAT(ply(ascii + "element vertex -1\n"), Contains("-1"));
    CHECK_THAT(ply(ascii + "element vertex 1000000000000000000\n" + xyz + "end_header\n1 2 3\n"),
               Contains("1000000000000000000") && Contains("ends after 1"));
    CHECK_THAT(ply("ply\nformat binary_little_endian 1.0\nelement vertex 1000000000000000000\n" + xyz +
                   "end_header\n123456789012"),
               Contains("ends after 1"));
    CHECK_THAT(
        ply(ascii + "element vertex 1\n" + xyz + "property list uchar int more\nend_header\n1 2 3 0\n"),
        Contains("list property \"more\""));
    CHECK_THAT(ply(ascii + "element vertex 1\nproperty float x\nproperty float y\nend_header\n1 2\n"),
               Contains("no column \"z\""));
    CHECK_THAT(ply(ascii + "element vertex 1\nproperty quad x\nend_header\n"), Contains("\"quad\""));
    CHECK_THAT(ply(ascii + "element vertex 1\n" + xyz + "end_header\n1 2 nan\n"),
               Contains("point 0") && Contains("z = nan"));
    CHECK_THAT(ply(ascii + "element vertex 1\n" + xyz + "end_header\n1 2 1e400\n"),
               Contains("1e400") && Contains("line 8"));
    CHECK_THAT(ply(ascii + "element vertex 1\n" + xyz + "end_header\n1,5 2,5 3,5\n"),
               Contains("6 numbers; expected 3") && Contains("comma"));
    CHECK_THAT(ply(ascii + "element vertex 2\n" + xyz + "end_header\n1 2 3\n1 2\n"), Contains("line 9"));
    CHECK_THAT(ply(ascii + "element face 1\nproperty list uchar int i\nend_header\n"),
               Contains("no element \"vertex\""));
    std::string swapped = "ply\nformat binary_little_endian 1.0\nelement vertex 50\n" + xyz + "end_header\n";
    for (int i = 0; i < 150; ++i) put(swapped, 100.5f + static_cast<float>(i), true);
    CHECK_THAT(ply(swapped), Contains("big-endian") && Contains("header"));
    std::string cut = "ply\nformat binary_little_endian 1.0\nelement vertex 2\n" + xyz + "end_header\n";
    for (int i = 0; i < 5; ++i) put(cut, 1.0f);
    CHECK_THAT(ply(cut), Contains("claims 2 points") && Contains("ends after 1"));
}

TEST_CASE("LZF decompresses literals and matches, and refuses what would leave its buffers") {
    const auto decompress = [](std::string in, std::size_t size) -> std::optional<std::string> {
        std::string out(size, '?');
        const bool good = io::lzf_decompress(std::as_bytes(std::span(in.data(), in.size())),
                                             std::as_writable_bytes(std::span(out.data(), out.size())));
        return good ? std::optional(out) : std::nullopt;
    };
    CHECK(decompress(std::string("\x02") + "abc", 3) == "abc");
    CHECK(decompress(std::string("\x02") + "abc" + std::string("\x20\x02", 2), 6) ==
          "abcabc");  // 3 bytes, 3 back
    CHECK(decompress(std::string("\x00"
                                 "a",
                                 2) +
                         std::string("\xe0\x05\x00", 3),
                     15) == std::string(15, 'a'));  // overlaps itself
    CHECK_FALSE(decompress(std::string("\x02") + "ab", 3));
    CHECK_FALSE(decompress(std::string("\x02") + "abc", 2));
    CHECK_FALSE(decompress(std::string("\x02") + "abc", 4));
    CHECK_FALSE(decompress(std::string("\x20\x02", 2), 3));  // nothing to go back to
    CHECK_FALSE(decompress(std::string("\x00"
                                       "a\xe0",
                                       3),
                           20));
    CHECK_FALSE(decompress(std::string("\x00"
                                       "a\x20",
                                       3),
                           20));
}

TEST_CASE("PCD: ascii, binary and compressed give the same points, and NaN is no return") {
    test::TempDir dir;
    const std::string fields = "x y z intensity ring label";
    std::string rows, binary;
    std::string columns[6];
    for (int i = 0; i < 100; ++i) {
        const float x = i == 50 ? kNanf : static_cast<float>(i), y = 1, z = 2,
                    intensity = static_cast<float>(i);
        const std::uint16_t ring = 3;
        const std::uint8_t label = static_cast<std::uint8_t>(i % 7);
        rows += (i == 50 ? "nan" : std::to_string(i)) + std::string(" 1 2 ") + std::to_string(i) + " 3 " +
                std::to_string(i % 7) + "\n";
        for (std::string* to : {&binary, &columns[0]}) put(*to, x);
        for (std::string* to : {&binary, &columns[1]}) put(*to, y);
        for (std::string* to : {&binary, &columns[2]}) put(*to, z);
        for (std::string* to : {&binary, &columns[3]}) put(*to, intensity);
        for (std::string* to : {&binary, &columns[4]}) put(*to, ring);
        for (std::string* to : {&binary, &columns[5]}) put(*to, label);
    }
    std::string all, packed;
    for (const auto& c : columns) all += c;
    const std::string lzf = lzf_literals(all);
    put(packed, static_cast<std::uint32_t>(lzf.size()));
    put(packed, static_cast<std::uint32_t>(all.size()));
    const auto header = [&](const std::string& data) {
        return pcd_header(fields, "4 4 4 4 2 1", "F F F F U U", 100, data);
    };
    write(dir / "ascii.pcd", header("ascii") + rows);
    write(dir / "binary.pcd", header("binary") + binary);
    write(dir / "packed.pcd", header("binary_compressed") + packed + lzf);
    for (const char* name : {"ascii.pcd", "binary.pcd", "packed.pcd"}) {
        INFO(name);
        const PointBatch b = read_one(dir / name);
        CHECK(b.size() == 99);
        CHECK(b.no_return == 1);
        CHECK(b.damaged == 0);
        CHECK(b.x[50] == 51);
        CHECK(b.label[50] == 51 % 7);
        CHECK(b.intensity[98] == 99 * 257);
    }
    write(dir / "lie.pcd", header("binary_compressed") + packed + lzf.substr(0, lzf.size() - 1));
    CHECK_THAT(message_of(dir / "lie.pcd"), Contains("compressed bytes, but ends after"));
    std::string broken = lzf;
    broken[0] = '\xff';
    write(dir / "broken.pcd", header("binary_compressed") + packed + broken);
    CHECK_THAT(message_of(dir / "broken.pcd"), Contains("damaged"));
}

TEST_CASE("the ring of a scan is its beam, and what is no number of a beam is not known") {
    test::TempDir dir;
    write(dir / "a.pcd", pcd_header("x y z ring", "4 4 4 4", "F F F F", 4, "ascii") +
                             "1 2 3 0\n1 2 4 31\n1 2 5 -1\n1 2 6 2.5\n");
    const PointBatch b = read_one(dir / "a.pcd");
    CHECK(b.beam == std::vector<std::uint16_t>{0, 31, PointBatch::kNoBeam, PointBatch::kNoBeam});
    CHECK(b.empty_rays.empty());
}

TEST_CASE("damaged PCD files are refused") {
    test::TempDir dir;
    const auto pcd = [&](const std::string& content) { return message_of(write(dir / "a.pcd", content)); };
    CHECK_THAT(pcd("1 2 3\n4 5 6\n"), Contains("not a line of a PCD header"));
    CHECK_THAT(pcd("# .PCD v0.7\nVERSION 0.7\n"), Contains("no PCD header"));
    CHECK_THAT(pcd("VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nDATA ascii\n"), Contains("WIDTH"));
    CHECK_THAT(
        pcd("VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 0\nHEIGHT 1\nPOINTS 5\nDATA ascii\n"),
        Contains("POINTS 5") && Contains("is 0"));
    CHECK_THAT(pcd("VERSION 0.7\nFIELDS x y z\nSIZE 4 4\nTYPE F F F\nWIDTH 1\nDATA ascii\n"),
               Contains("SIZE 2"));
    CHECK_THAT(pcd("VERSION 0.7\nFIELDS x y z\nSIZE 4 4 3\nTYPE F F F\nWIDTH 1\nDATA ascii\n1 2 3\n"),
               Contains("SIZE 3"));
    CHECK_THAT(pcd("VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH many\nDATA ascii\n"),
               Contains("many"));
    CHECK_THAT(pcd("VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 18446744073709551615\nHEIGHT "
                   "16\nDATA binary\n"),
               Contains("impossible"));
    CHECK_THAT(pcd(pcd_header("x y z", "4 4 4", "F F F", 1000000000, "binary") + "123456789012"),
               Contains("ends after 1"));
    CHECK_THAT(pcd(pcd_header("x y z", "4 4 4", "F F F", 1, "zip")), Contains("\"zip\""));
}

TEST_CASE("KITTI scans are four floats a point, and poses place them in the world with their sensor") {
    test::TempDir dir;
    std::string bytes;
    for (const float v : {1.0f, 2.0f, 3.0f, 0.5f, 4.0f, 5.0f, 6.0f, 1.0f}) put(bytes, v);
    write(dir / "a.bin", bytes);
    PointBatch b = read_one(dir / "a.bin");
    CHECK(b.z == std::vector<double>{3, 6});
    CHECK(b.intensity == std::vector<std::uint16_t>{32768, 65535});
    CHECK(b.sensor.empty());
    ReadOptions options;
    options.world_from_sensor = Pose{{100, 200, 300}, from_yaw_pitch_roll(1.5707963267948966, 0, 0)};
    options.scan_time_s = 12.5;
    b = read_one(dir / "a.bin", options);
    CHECK(b.x[0] == Approx(98));
    CHECK(b.y[0] == Approx(201));
    CHECK(b.sensor[1].z == 300);
    CHECK(b.gps_time[0] == 12.5);
    write(dir / "cut.bin", bytes.substr(0, 30));
    CHECK_THAT(message_of(dir / "cut.bin"), Contains("30 bytes") && Contains("16 bytes"));
    options.salvage = true;
    CHECK(read_one(dir / "cut.bin", options).size() == 1);
    CHECK(open_point_file(dir / "cut.bin", options)->info().points_lost == 1);
}

TEST_CASE("text files: names on top, or by number of columns, or as told") {
    test::TempDir dir;
    CHECK(read_one(write(dir / "a.xyz", "1 2 3\n4 5 6\n\n# end\n7 8 9")).z == std::vector<double>{3, 6, 9});
    const PointBatch named = read_one(write(dir / "a.csv", "Time,Y,X,Z,Classification\n1.5,2,1,3,6\n"));
    CHECK(named.x[0] == 1);
    CHECK(named.label[0] == 6);
    CHECK(named.gps_time[0] == 1.5);
    CHECK(read_one(write(dir / "b.txt", "//X Y Z Intensity\n1 2 3 255\n")).intensity[0] == 65535);
    CHECK(read_one(write(dir / "b.xyz", "# x y z label\n1 2 3 4\n")).label[0] == 4);
    CHECK(read_one(write(dir / "c.csv", "\xef\xbb\xbfx;y;z\r\n1; 2; 3;\r\n")).z[0] == 3);
    CHECK(read_one(write(dir / "c.xyz",
                         "\xef\xbb\xbf"
                         "1, 2,\t3\n"))
              .x[0] == 1);
    CHECK(read_one(write(dir / "c.pts", "2\n1 2 3 4 5 6 7\n1 2 3 4 5 6 7\n")).size() == 2);
    ReadOptions options;
    options.text_columns = "label x y z t";
    CHECK(read_one(write(dir / "d.txt", "4 1 2 3 9\n"), options).label[0] == 4);
    CHECK_THAT(message_of(dir / "d.txt"), Contains("5 columns without names"));
    CHECK_THAT(message_of(write(dir / "e.txt", "1 2 3\n1 2 x\n")), Contains("line 2") && Contains("\"x\""));
    CHECK_THAT(message_of(write(dir / "f.csv", "x,y,z,label\n1,2,3,4\n1,2,3,-1.5\n1,2,3,-7\n")),
               Contains("point 1: the label is -1.5; expected a whole number from 0 to 65534"));
    CHECK_THAT(message_of(write(dir / "f.csv", "x,y,z,time\n1,2,3,nan\n")),
               Contains("point 0: the time is nan; expected a finite number of seconds"));
    CHECK_THAT(message_of(write(dir / "f.csv", "x,y,z,sensor_x,sensor_y,sensor_z\n1,2,3,1e20,0,0\n")),
               Contains("point 0: the sensor position 1e+20, 0, 0 is not on Earth"));
    CHECK_THAT(message_of(write(dir / "g.txt", std::string("\x01\x02\x03\n", 4))), Contains("neither text"));
    CHECK_THAT(message_of(write(dir / "h.what", "1 2 3\n")), Contains("not a known point file"));
    options = {};
    options.salvage = true;
    const PointBatch salvaged = read_one(write(dir / "i.txt", "1 2 3\n1 2 x\n7 8 9\n1 2\n"), options);
    CHECK(salvaged.x == std::vector<double>{1, 7});
    CHECK(salvaged.damaged == 2);
}

TEST_CASE("values of an ASCII PLY must fit the types of its header") {
    test::TempDir dir;
    const std::string header =
        "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\n"
        "property uchar red\nproperty int label\nend_header\n";
    CHECK(read_one(write(dir / "a.ply", header + "1 2 3 255 5\n4 5 6 0 6\n")).size() == 2);
    CHECK_THAT(message_of(write(dir / "b.ply", header + "1 2 3 255 5\n4 5 6 256 6\n")),
               Contains("line 11: \"red\" is 256; expected a whole number from 0 to 255"));
    CHECK_THAT(message_of(write(dir / "c.ply", header + "1 2 3 255 5.5\n4 5 6 0 6\n")),
               Contains("line 10: \"label\" is 5.5; expected a whole number from -2147483648 to 2147483647"));
    ReadOptions options;
    options.salvage = true;
    CHECK(read_one(dir / "c.ply", options).damaged == 1);
}

TEST_CASE("half a sensor position is noted and not used") {
    test::TempDir dir;
    const auto file = open_point_file(write(dir / "a.csv", "x,y,z,sensor_x,sensor_y\n1,2,3,4,5\n"));
    CHECK_FALSE(file->info().has_sensor);
    CHECK_THAT(file->info().notes.at(0), Contains("sensor position lacks some of x, y and z"));
}

TEST_CASE("large text files are read in blocks, in order") {
    test::TempDir dir;
    std::string text = "x y z\n";
    for (int i = 0; i < 150'000; ++i)
        text += std::to_string(i) + " 0 0\n" + (i % 1000 == 0 ? "# comment\n\n" : "");
    const auto file = open_point_file(write(dir / "a.txt", text));
    CHECK(file->info().points == 150'000);
    CHECK(file->block_count() == 3);
    PointBatch b;
    int next = 0;
    for (std::size_t i = 0; i < file->block_count(); ++i) {
        file->read_block(i, b);
        for (const double x : b.x) REQUIRE(x == next++);
    }
    CHECK(next == 150'000);
}

TEST_CASE("intensity of any scale becomes 16 bits, and the range can be said") {
    test::TempDir dir;
    const auto values = [&](const std::string& rows, std::optional<std::pair<double, double>> range = {}) {
        ReadOptions options;
        options.intensity_range = range;
        return read_one(write(dir / "a.txt", "x y z intensity\n" + rows), options).intensity;
    };
    using V = std::vector<std::uint16_t>;
    CHECK(values("0 0 0 0\n0 0 0 1\n") == V{0, 65535});
    CHECK(values("0 0 0 0\n0 0 0 200\n") == V{0, 51400});
    CHECK(values("0 0 0 0\n0 0 0 300\n") == V{0, 300});
    CHECK(values("0 0 0 -25\n0 0 0 5\n") == V{0, 65535});  // decibels
    CHECK(values("0 0 0 0\n0 0 0 1\n", {{0, 2}}) == V{0, 32768});
}
