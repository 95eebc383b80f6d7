#include "bags/bag_image.hpp"
#include "core/error.hpp"
#include "io/bytes_le.hpp"
#include "io/input/open_point_file.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <span>

using namespace citysplat;
using Catch::Contains;

namespace {

/// Where chunk `number` of the file begins; clouds are 1 to 3.
std::size_t find_chunk(const std::vector<std::byte>& file, std::size_t number) {
    std::size_t at = 8;
    while (std::to_integer<int>(file.at(at)) != 6 || number-- > 0)
        at += 9 + io::load_le<std::uint64_t>(file.data() + at + 1);
    return at;
}

std::size_t points_of(const PointFile& file) {
    PointBatch block;
    std::size_t points = 0;
    for (std::size_t b = 0; b < file.block_count(); ++b) {
        file.read_block(b, block);
        points += block.size();
    }
    return points;
}

}  // namespace

TEST_CASE("a bad point of a bag is named by its own chunk, not by the first of its kind") {
    const test::TempDir dir;
    const auto path = dir / "drive.mcap";
    test::BagImage{}.write(path);
    auto bytes = read_file(path);
    const std::size_t chunk = find_chunk(bytes, 3);
    io::store_le(bytes.data() + chunk + 33, std::uint32_t{0});  // no checksum
    const float first_point[]{1, 2, 3};
    const auto pattern = std::as_bytes(std::span(first_point));
    const auto found = std::search(bytes.begin() + static_cast<std::ptrdiff_t>(chunk), bytes.end(),
                                   pattern.begin(), pattern.end());
    REQUIRE(found != bytes.end());
    io::store_le(&*found, 1e30f);
    test::write_bytes(path, bytes);
    const auto file = open_point_file(path);
    REQUIRE(file->block_count() == 3);
    PointBatch batch;
    file->read_block(0, batch);
    CHECK_THROWS_WITH(file->read_block(2, batch),
                      Contains("chunk at byte " + std::to_string(chunk) + ": point 0: x = "));
}

TEST_CASE("salvage leaves out chunks whose head is damaged, and counts them") {
    const test::TempDir dir;
    const auto path = dir / "drive.mcap";
    test::BagImage{}.write(path);
    const auto whole = read_file(path);
    const std::size_t chunk = find_chunk(whole, 2);
    ReadOptions salvage;
    salvage.salvage = true;
    for (const std::size_t field : {std::size_t{16}, std::size_t{28}, std::size_t{32}}) {
        CAPTURE(field);
        auto bytes = whole;
        io::store_le(bytes.data() + chunk + 9 + field, std::uint32_t{0x7fffffff});
        test::write_bytes(path, bytes);
        CHECK_THROWS_WITH(open_point_file(path), Contains("byte " + std::to_string(chunk)));
        const auto file = open_point_file(path, salvage);
        CHECK(file->info().points_lost > 0);
        CHECK(points_of(*file) == 20);
    }
}

TEST_CASE("a compression that is not read is no damage, and salvage says so, too") {
    const test::TempDir dir;
    const auto path = dir / "drive.mcap";
    test::BagImage image;
    image.compression = io::ChunkCompression::zstd;
    image.write(path);
    auto bytes = read_file(path);
    const std::size_t name = find_chunk(bytes, 2) + 9 + 28;  // its length, and four letters
    bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(name + 7));
    std::memcpy(bytes.data() + name, "\3\0\0\0lz4", 7);
    ReadOptions options;
    for (const bool salvage : {false, true}) {
        options.salvage = salvage;
        test::write_bytes(path, bytes);
        CHECK_THROWS_WITH(open_point_file(path, options), Contains("lz4") && Contains("zstd"));
    }
}

TEST_CASE("the clock of a bag may be thousands of years from its stamps") {
    const test::TempDir dir;
    const auto path = dir / "drive.mcap";
    test::BagImage image;
    image.facts = {{"clock_offset_s", "-50000000000"}};
    image.write(path);
    const auto file = open_point_file(path);
    PointBatch batch;
    file->read_block(0, batch);
    REQUIRE(batch.size() == 10);
    CHECK(batch.gps_time[0] == Approx(50000000010.0).epsilon(0).margin(0.001));
    CHECK(batch.sensor[0].x == Approx(100).margin(0.01));
}
