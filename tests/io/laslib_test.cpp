/// Parity with LASlib, where the build has it: the same points from both readers, and from what it writes.
#include "io/las/laslib.hpp"

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/open_point_file.hpp"
#include "io/las/chunk_decoder.hpp"
#include "io/laz_image.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace citysplat;
using Catch::Contains;
using test::las_image;
namespace fs = std::filesystem;

namespace {

using Reader = ReadOptions::Reader;

PointBatch read_all(const fs::path& path, Reader reader) {
    ReadOptions options;
    options.reader = reader;
    const auto file = open_point_file(path, options);
    PointBatch all, b;
    for (std::size_t i = 0; i < file->block_count(); ++i) {
        file->read_block(i, b);
        const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        append(all.x, b.x), append(all.y, b.y), append(all.z, b.z);
        append(all.gps_time, b.gps_time), append(all.intensity, b.intensity), append(all.label, b.label);
        append(all.instance, b.instance), append(all.scan_angle_deg, b.scan_angle_deg);
        append(all.withheld, b.withheld);
    }
    return all;
}

void check_same(const PointBatch& a, const PointBatch& b) {
    CHECK(a.x == b.x);
    CHECK(a.y == b.y);
    CHECK(a.z == b.z);
    CHECK(a.gps_time == b.gps_time);
    CHECK(a.intensity == b.intensity);
    CHECK(a.label == b.label);
    CHECK(a.instance == b.instance);
    CHECK(a.scan_angle_deg == b.scan_angle_deg);
    CHECK(a.withheld == b.withheld);
}

/// More than one chunk of points that jump about, with an extra byte field and several scanner channels.
test::LasImage rough_image(int format) {
    constexpr std::uint32_t kPoints = 60'000;
    std::string field(192, '\0');
    field[2] = 3;  // u16
    field.replace(4, 8, "instance");
    test::LasImage image = las_image(format >= 6 ? 4 : 3, format, kPoints, 2, {{"LASF_Spec", 4, field}});
    const std::size_t begin = image.points_offset();
    const std::size_t record = io::kLasRecordBytes[static_cast<std::size_t>(format)] + 2;
    for (std::uint32_t i = 0; i < kPoints; ++i) {
        const std::size_t at = begin + record * i;
        image.set(at + 12, static_cast<std::uint16_t>(rng::bits(1, i)));
        image.set(at + record - 2, static_cast<std::uint16_t>(rng::bits(2, i)));
        if (format >= 6)
            image.set(at + 15, static_cast<std::uint8_t>((i / 7 % 4) << 4 | (i % 5 == 0 ? 4 : 0)));
        if (format >= 6) image.set(at + 14, static_cast<std::uint8_t>(0x11));
    }
    return image;
}

bool skipped() {
    if (io::laslib_available()) return false;
    WARN("skipped: this build has no LASlib");
    return true;
}

}  // namespace

TEST_CASE("a build without LASlib says how to get one") {
    if (io::laslib_available()) return;
    test::TempDir dir;
    ReadOptions options;
    options.reader = Reader::laslib;
    const auto las = las_image(2, 1, 3).write(dir / "a.las");
    CHECK_THROWS_AS(open_point_file(las, options), UnavailableError);
    CHECK_THROWS_WITH(open_point_file(las, options), Contains("a.las") && Contains("LASlib_DIR"));
    CHECK_THROWS_WITH(io::replace_by_laz(las), Contains("LAZ is written by LASlib"));
    CHECK(fs::exists(las));
    auto old = test::laz_image(3);
    CHECK_THROWS_AS(open_point_file(old.set<std::uint16_t>(old.record_at, 1).write(dir / "old.laz")),
                    UnavailableError);
}

TEST_CASE("LASlib and our own reader give the same points of every point format") {
    if (skipped()) return;
    for (int format = 0; format <= 10; ++format) {
        INFO("format " << format);
        test::TempDir dir;
        const auto las = rough_image(format).write(dir / "a.las");
        const PointBatch expected = read_all(las, Reader::native);
        REQUIRE(expected.size() == 60'000);
        check_same(read_all(las, Reader::laslib), expected);
        const auto laz = io::replace_by_laz(las);
        CHECK(laz.extension() == ".laz");
        CHECK_FALSE(fs::exists(las));
        check_same(read_all(laz, Reader::laslib), expected);
        check_same(read_all(laz, Reader::automatic), expected);
        const bool ours = format != 4 && format != 5;
        if (ours && io::laz_available()) check_same(read_all(laz, Reader::native), expected);
        if (!ours)
            CHECK_THROWS_WITH(
                read_all(laz, Reader::native),
                Contains("point format " + std::to_string(format)) && Contains("--reader laslib"));
    }
}

TEST_CASE("compression can be interrupted") {
    if (skipped()) return;
    test::TempDir dir;
    const auto las = rough_image(6).write(dir / "a.las");
    CancelToken cancelled;
    cancelled.request();
    CHECK_THROWS_AS(io::compress_las(las, dir / "a.laz", cancelled), Interrupted);
}

TEST_CASE("LASlib reads blocks in any order and from several threads") {
    if (skipped()) return;
    test::TempDir dir;
    const auto laz = io::replace_by_laz(rough_image(5).write(dir / "a.las"));
    const auto file = open_point_file(laz);
    REQUIRE(file->block_count() == 2);
    std::vector<std::thread> threads;
    std::vector<std::uint64_t> sums(4);
    for (std::size_t t = 0; t < sums.size(); ++t)
        threads.emplace_back([&, t] {
            PointBatch b;
            for (int i = 0; i < 4; ++i) {
                file->read_block((t + static_cast<std::size_t>(i)) % 2, b);
                for (const auto v : b.intensity) sums[t] += v;
            }
        });
    for (auto& thread : threads) thread.join();
    for (const auto sum : sums) CHECK(sum == sums[0]);
}

TEST_CASE("damage that LASlib meets is an error of ours, and salvage counts it") {
    if (skipped()) return;
    test::TempDir dir;
    const auto laz = io::replace_by_laz(rough_image(3).write(dir / "a.las"));
    auto bytes = read_file(laz);
    for (std::size_t i = 30'000; i < 30'100; ++i) bytes[i] ^= std::byte{0x5a};
    FileWriter out(laz);
    out.write(bytes);
    out.finish();
    CHECK_THROWS_AS(read_all(laz, Reader::laslib), InputError);
    ReadOptions options;
    options.reader = Reader::laslib;
    options.salvage = true;
    const auto file = open_point_file(laz, options);
    std::uint64_t seen = 0;
    PointBatch b;
    for (std::size_t i = 0; i < file->block_count(); ++i)
        file->read_block(i, b), seen += b.size() + b.damaged;
    CHECK(seen == 60'000);
}
