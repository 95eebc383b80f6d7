#include "bags/bag_image.hpp"
#include "cli/small_city.hpp"
#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "io/bytes_le.hpp"
#include "io/input/open_point_file.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using Catch::Contains;

namespace {

PointBatch read_all(const std::filesystem::path& path, const ReadOptions& options = {}) {
    const auto file = open_point_file(path, options);
    PointBatch all, block;
    for (std::size_t b = 0; b < file->block_count(); ++b) {
        file->read_block(b, block);
        block.check();
        all.x.insert(all.x.end(), block.x.begin(), block.x.end());
        all.y.insert(all.y.end(), block.y.begin(), block.y.end());
        all.gps_time.insert(all.gps_time.end(), block.gps_time.begin(), block.gps_time.end());
        all.sensor.insert(all.sensor.end(), block.sensor.begin(), block.sensor.end());
        all.beam.insert(all.beam.end(), block.beam.begin(), block.beam.end());
        all.intensity.insert(all.intensity.end(), block.intensity.begin(), block.intensity.end());
    }
    return all;
}

/// Where the first record of that opcode begins, outside of chunks.
std::size_t find_record(const std::vector<std::byte>& file, std::uint8_t opcode, std::size_t skip = 0) {
    std::size_t at = 8;
    while (true) {
        REQUIRE(at + 9 <= file.size());
        if (std::to_integer<std::uint8_t>(file[at]) == opcode && skip-- == 0) return at;
        at += 9 + io::load_le<std::uint64_t>(file.data() + at + 1);
    }
}

}  // namespace

TEST_CASE("every point of a bag is placed by tf at its own time") {
    const test::TempDir dir;
    const auto path = dir / "drive.mcap";
    const bool zstd = GENERATE(false, true), odometry = GENERATE(false, true);
    CAPTURE(zstd, odometry);
    test::BagImage image;
    image.compression = zstd ? io::ChunkCompression::zstd : io::ChunkCompression::none;
    image.with_tf = !odometry, image.with_odometry = odometry;
    image.write(path);
    const PointBatch points = read_all(path);
    REQUIRE(points.x.size() == 30);
    for (std::size_t i = 0; i < 30; ++i) {
        const double time = 10 + 0.1 * static_cast<double>(i / 10) + 0.01 * static_cast<double>(i % 10);
        const double east = 100 + (time - 10) * 10;
        CHECK(points.gps_time[i] == Approx(time).margin(1e-8));
        CHECK(points.sensor[i].x == Approx(east).margin(1e-6));
        CHECK(points.sensor[i].z == Approx(2));
        CHECK(points.x[i] == Approx(east + 1 + static_cast<double>(i % 10)).margin(1e-6));
        CHECK(points.beam[i] == i % 10);
        CHECK(points.intensity[i] == Approx(25 * static_cast<double>(i % 10) * 257).margin(1));
    }
}

TEST_CASE("clouds without a pose are left out and counted") {
    const test::TempDir dir;
    const auto path = dir / "drive.mcap";
    test::BagImage image;
    image.cloud_times_s = {9.5, 10.0, 10.35};
    image.write(path);
    const auto file = open_point_file(path);
    CHECK(file->info().points == 10);
    REQUIRE_FALSE(file->info().notes.empty());
    CHECK_THAT(file->info().notes[0], Contains("2 of 3 clouds"));
    const auto built = test::run_json({"build", dir / "city", path, "--memory", "256M"});
    CHECK(built["points_read"] == 30);
    CHECK(built["points_dropped"]["damaged"] == 20);
    image.with_tf = false;
    image.write(path);
    CHECK_THROWS_WITH(open_point_file(path), Contains("\"lidar\"") && Contains("tf"));
}

TEST_CASE("broken bags are refused by record, with the way out") {
    const test::TempDir dir;
    const auto path = dir / "drive.mcap", broken = dir / "broken.mcap";
    test::BagImage{}.write(path);
    const auto whole = read_file(path);
    const std::size_t chunk = find_record(whole, 6, 2);  // the second cloud
    const std::string name = "byte " + std::to_string(chunk);
    const auto refused = [&](std::vector<std::byte> bytes, const std::string& why) {
        test::write_bytes(broken, bytes);
        CAPTURE(why);
        CHECK_THROWS_WITH(open_point_file(broken), Contains("broken.mcap") && Contains(why));
    };
    const auto salvaged = [&](std::size_t points) {
        ReadOptions salvage;
        salvage.salvage = true;
        CHECK(open_point_file(broken, salvage)->info().points_lost > 0);
        CHECK(read_all(broken, salvage).x.size() == points);
    };
    SECTION("cut in the middle of a chunk") {
        auto bytes = whole;
        bytes.resize(chunk + 200);
        refused(bytes, "--salvage");
        refused(bytes, name);
        salvaged(10);
    }
    SECTION("a changed byte of a chunk") {
        auto bytes = whole;
        bytes[chunk + 900] ^= std::byte{4};
        refused(bytes, "checksum");
        refused(bytes, name);
        salvaged(20);
    }
    SECTION("a chunk that claims more than there is") {
        auto bytes = whole;
        io::store_le(bytes.data() + chunk + 9 + 16, std::uint64_t{1} << 60);
        refused(bytes, name);
    }
    SECTION("a record that claims more than the file") {
        auto bytes = whole;
        io::store_le(bytes.data() + chunk + 1, ~std::uint64_t{0});
        refused(bytes, "--salvage");
        salvaged(10);
    }
    SECTION("a record that is no chunk any more, and would be passed over") {
        auto bytes = whole;
        bytes[chunk] ^= std::byte{0x40};
        refused(bytes, "counts 9 messages, and has 8");
        refused(bytes, "--salvage");
        salvaged(20);
        ReadOptions salvage;
        salvage.salvage = true;
        const auto notes = open_point_file(broken, salvage)->info().notes;
        CHECK(std::any_of(notes.begin(), notes.end(),
                          [](const std::string& note) { return note.starts_with("1 messages"); }));
    }
    SECTION("a record that has become the end of the file") {
        auto bytes = whole;
        bytes[chunk] = std::byte{2};
        refused(bytes, "in the middle");
        refused(bytes, name);
        salvaged(20);
    }
    SECTION("metadata that are none any more: the clock would be another one") {
        auto bytes = whole;
        bytes[find_record(whole, 12)] ^= std::byte{0x40};
        refused(bytes, "counts 1 records of metadata, and has 0");
    }
    SECTION("an unknown compression") {
        auto bytes = whole;
        const auto text = std::string("\3\0\0\0lz4", 7);
        std::vector<std::byte> more(reinterpret_cast<const std::byte*>(text.data()),
                                    reinterpret_cast<const std::byte*>(text.data()) + text.size());
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(chunk + 37),
                    bytes.begin() + static_cast<std::ptrdiff_t>(chunk + 41));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(chunk + 37), more.begin(), more.end());
        refused(bytes, "lz4");
        refused(bytes, "zstd");
    }
    SECTION("no MCAP at all") { refused(std::vector<std::byte>(100, std::byte{7}), "magic"); }
    SECTION("indexes and the summary are not needed") {
        auto bytes = whole;
        const std::size_t end = find_record(whole, 15);
        for (std::size_t i = end + 13; i < bytes.size(); ++i) bytes[i] = std::byte{0xff};
        test::write_bytes(broken, bytes);
        CHECK(read_all(broken).x.size() == 30);
    }
}

TEST_CASE("messages that lie about themselves are refused") {
    const test::TempDir dir;
    const auto path = dir / "drive.mcap", broken = dir / "broken.mcap";
    test::BagImage{}.write(path);
    const auto whole = read_file(path);
    // Without their checksums chunks are believed, and what is in them must be held against itself.
    std::vector<std::byte> bare = whole;
    for (std::size_t i = 0; i < 4; ++i)
        io::store_le(bare.data() + find_record(bare, 6, i) + 33, std::uint32_t{0});
    test::write_bytes(broken, bare);
    CHECK(read_all(broken).x.size() == 30);
    std::size_t refused = 0, read = 0;
    for (std::uint64_t n = 0; n < 3000; ++n) {
        auto bytes = bare;
        constexpr std::uint8_t kValues[]{0, 1, 0x7f, 0x80, 0xff};
        const std::size_t at = rng::bits(7, 2 * n) % find_record(bare, 15);
        bytes[at] = std::byte{kValues[rng::bits(7, 2 * n + 1) % 5]};
        test::write_bytes(broken, bytes);
        try {
            read_all(broken);
            ++read;
        } catch (const Error&) {
            ++refused;
        }
    }
    CHECK(refused > 100);
    CHECK(read > 100);
}

TEST_CASE("a bag with everything gives the city of the PLY files of its run") {
    const test::SmallCity made;
    const auto simulate = [&](const std::string& out, const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"simulate", made.city, "--trajectory", made.trajectory,
                                           "--sensor", "vlp-16",  "--out",        made.dir / out};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return test::run_json(arguments);
    };
    const auto ply = simulate("ply", {"--format", "ply"});
    const auto bag = simulate("bag", {"--format", "rosbag2", "--points", "full"});
    CHECK(ply["digest"] == bag["digest"]);
    const auto from_ply = test::run_json({"build", made.dir / "a", made.dir / "ply/scans", "--trajectory",
                                          made.trajectory, "--classes", "synthetic"});
    const auto from_bag =
        test::run_json({"build", made.dir / "b", made.dir / "bag", "--classes", "synthetic"});
    CHECK(from_ply["splats"].get<std::uint64_t>() > 1000);
    CHECK(from_ply["splats"] == from_bag["splats"]);
    CHECK(from_ply["digest"] == from_bag["digest"]);
}
