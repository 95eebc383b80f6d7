#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/open_point_file.hpp"
#include "io/las/chunk_decoder.hpp"
#include "io/las/integer_decoder.hpp"
#include "io/laz_image.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <thread>

using namespace citysplat;
using Catch::Contains;
using test::laz_image;

namespace {

std::string message_of(const test::LasImage& image, const ReadOptions& options = {}) {
    test::TempDir dir;
    try {
        const auto file = open_point_file(image.write(dir / "a.laz"), options);
        PointBatch batch;
        for (std::size_t i = 0; i < file->block_count(); ++i) file->read_block(i, batch);
    } catch (const Error& e) {
        return e.what();
    }
    return "(no error)";
}

/// Cases that decode need the decoder; a build without it says how to get one, which is tested too.
bool skipped() {
    if (io::laz_available()) return false;
    WARN("skipped: this build has no LAZ decoder");
    return true;
}

}  // namespace

TEST_CASE("numbers of a chunk table come back from the arithmetic coder") {
    std::vector<std::uint32_t> values;
    for (std::uint32_t i = 0; i < 3000; ++i)
        values.push_back(static_cast<std::uint32_t>(rng::bits(1, i) >> (32 + rng::bits(2, i) % 32)));
    for (const std::uint32_t v : {0u, 1u, 0xffffffffu, 0x80000000u, 0x7fffffffu, 2u, 256u, 257u})
        values.push_back(v);
    test::LazIntegerEncoder encoder;
    for (std::size_t i = 0; i < values.size(); ++i) encoder.add(values[i], i ? values[i - 1] : 0, i % 2);
    const std::string packed = encoder.finish();
    io::LazIntegerDecoder decoder(std::as_bytes(std::span(packed.data(), packed.size())));
    for (std::size_t i = 0; i < values.size(); ++i) {
        INFO(i);
        REQUIRE(decoder.next(i ? values[i - 1] : 0, i % 2) == values[i]);
    }
}

TEST_CASE("a build without the LAZ decoder says how to get it") {
    if (io::laz_available()) return;
    CHECK_THAT(message_of(laz_image(3)), Contains("tools/fetch-laz-perf"));
}

TEST_CASE("LAZ with fixed and with variable chunks is read") {
    if (skipped()) return;
    test::TempDir dir;
    for (const bool variable : {false, true}) {
        const auto file = open_point_file(laz_image(5, variable).write(dir / "a.laz"));
        CHECK(file->info().format == "LAZ 1.2, point format 0");
        REQUIRE(file->block_count() == 5);
        PointBatch b;
        file->read_block(3, b);
        REQUIRE(b.size() == 1);
        CHECK(b.x[0] == Approx(100.03));
        CHECK(b.intensity[0] == 1003);
        CHECK(b.label[0] == 3);
    }
}

TEST_CASE("a chunk size of 0 means that the chunk table counts the points, as some COPC writers have it") {
    if (skipped()) return;
    test::TempDir dir;
    auto image = laz_image(5, true);
    image.set<std::uint32_t>(image.record_at + 12, 0);
    const auto file = open_point_file(image.write(dir / "a.laz"));
    REQUIRE(file->block_count() == 5);
    PointBatch b;
    file->read_block(4, b);
    CHECK(b.intensity.at(0) == 1004);
}

TEST_CASE("the hierarchy of a COPC file is not followed: it may lie, and go in circles") {
    if (skipped()) return;
    test::TempDir dir;
    // COPC's info record, with a hierarchy page inside it whose only entry refers to the page itself.
    std::string copc(160 + 32, '\0');
    const std::uint64_t page = 227 + 2 * test::kLasVlrHead + 40 + 160, page_bytes = 32;
    const std::int32_t is_a_page = -1;
    std::memcpy(copc.data() + 40, &page, 8);
    std::memcpy(copc.data() + 48, &page_bytes, 8);
    std::memcpy(copc.data() + 160 + 16, &page, 8);
    std::memcpy(copc.data() + 160 + 24, &page_bytes, 4);
    std::memcpy(copc.data() + 160 + 28, &is_a_page, 4);
    const auto file = open_point_file(laz_image(5, false, {{"copc", 1, copc}}).write(dir / "a.copc.laz"));
    CHECK(file->info().points == 5);
    PointBatch b;
    std::uint64_t points = 0;
    for (std::size_t i = 0; i < file->block_count(); ++i) file->read_block(i, b), points += b.size();
    CHECK(points == 5);
}

TEST_CASE("the chunk table may stand at the end of the file") {
    if (skipped()) return;
    test::TempDir dir;
    auto image = laz_image(4);
    const auto table = static_cast<std::int64_t>(image.table_at);
    image.set<std::int64_t>(image.points_offset(), -1).set(image.bytes.size(), table);
    CHECK(open_point_file(image.write(dir / "a.laz"))->block_count() == 4);
}

TEST_CASE("damaged LAZ files are refused before anything is decoded") {
    if (skipped()) return;
    const auto image = [] { return laz_image(5); };
    const std::size_t record = image().record_at, table = image().table_at, begin = image().points_offset();
    CHECK_THAT(message_of(image()), Contains("(no error)"));
    CHECK_THAT(message_of(image().set<std::uint32_t>(table + 4, 0xffffffffu)),
               Contains("4294967295 chunks") && Contains("only 6 fit"));
    CHECK_THAT(message_of(image().set<std::uint32_t>(table + 4, 4)),
               Contains("4 chunks") && Contains("expected 5"));
    CHECK_THAT(message_of(image().set<std::uint32_t>(table, 7)), Contains("version 7"));
    CHECK_THAT(message_of(image().set<std::int64_t>(begin, -2)), Contains("chunk table at byte -2"));
    CHECK_THAT(message_of(image().set<std::int64_t>(begin, -1)), Contains("chunk table at byte"));
    CHECK_THAT(message_of(image().set<std::int64_t>(begin, 1'000'000)), Contains("1000000"));
    CHECK_THAT(message_of(image().set<std::int64_t>(begin, 8)), Contains("chunk table at byte 8"));
    auto zeroed = image();
    std::fill(zeroed.bytes.begin() + static_cast<std::ptrdiff_t>(table + 8), zeroed.bytes.end(),
              std::byte{0});
    CHECK_THAT(message_of(zeroed), Contains("chunk 0"));
    CHECK_THAT(message_of(image().text(227 + 2, "something else")), Contains("no LASzip record"));
    CHECK_THAT(message_of(image().set<std::uint16_t>(record, 9)), Contains("compressor 9"));
    ReadOptions native;  // LASlib would take these files
    native.reader = ReadOptions::Reader::native;
    CHECK_THAT(message_of(image().set<std::uint16_t>(record, 1), native), Contains("LASzip 1"));
    CHECK_THAT(message_of(image().set<std::uint16_t>(record + 2, 3)), Contains("coder 3"));
    CHECK_THAT(message_of(image().set<std::uint16_t>(record + 34, 10)), Contains("item 1 has type 10"));
    CHECK_THAT(message_of(image().set<std::uint16_t>(record + 36, 99)), Contains("99 bytes"));
    CHECK_THAT(message_of(image().set<std::uint16_t>(record + 38, 1), native), Contains("version 1 (2010)"));
    CHECK_THAT(message_of(image().set<std::uint32_t>(107, 4000000000u)),
               Contains("5 chunks") && Contains("4000000000 points"));
    CHECK_THAT(message_of(image().cut(table + 9)), Contains("cut off"));
    CHECK_THAT(message_of(image().cut(begin + 4)), Contains("ends before the offset of the chunk table"));
}

TEST_CASE("a chunk that claims more points than it holds ends in an error, not in invented points") {
    if (skipped()) return;
    auto image = laz_image(5);
    // One chunk with all five points: the coded ones are missing.
    image.set<std::uint32_t>(image.record_at + 12, 50'000).set<std::uint32_t>(image.table_at + 4, 1);
    image.set<std::uint32_t>(107, 50'000);
    CHECK_THAT(message_of(image), Contains("chunk 0") && (Contains("beyond its end") || Contains("bounds")));
    ReadOptions salvage;
    salvage.salvage = true;
    test::TempDir dir;
    const auto file = open_point_file(image.write(dir / "a.laz"), salvage);
    PointBatch b;
    file->read_block(0, b);
    CHECK(b.size() + b.damaged == 50'000);
    CHECK(b.damaged == 50'000);
}

TEST_CASE("a decoder takes little address space, which some machines limit") {
    if (skipped()) return;
    const auto mapped_bytes = [] {
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        return pages * 4096;
    };
    test::TempDir dir;
    const auto file = open_point_file(laz_image(5).write(dir / "a.laz"));
    const std::size_t before = mapped_bytes();
    std::size_t during = 0;
    std::thread([&] {
        PointBatch b;
        file->read_block(0, b);
        during = mapped_bytes();
    }).join();
    CHECK(during < before + (std::size_t{512} << 20));
}

TEST_CASE("threads decode good and bad chunks side by side") {
    if (skipped()) return;
    test::TempDir dir;
    const auto good = laz_image(20).write(dir / "good.laz");
    auto image = laz_image(5);
    image.set<std::uint32_t>(image.record_at + 12, 50'000)
        .set<std::uint32_t>(image.table_at + 4, 1)
        .set<std::uint32_t>(107, 50'000);
    const auto bad = image.write(dir / "bad.laz");
    std::vector<std::thread> threads;
    std::vector<int> sums(6), errors(6);
    for (std::size_t t = 0; t < sums.size(); ++t)
        threads.emplace_back([&, t] {
            for (int round = 0; round < 5; ++round) {
                const auto file = open_point_file(good);
                PointBatch b;
                for (std::size_t i = 0; i < file->block_count(); ++i) {
                    file->read_block(i, b);
                    sums[t] += static_cast<int>(b.intensity.at(0));
                }
                try {
                    open_point_file(bad)->read_block(0, b);
                } catch (const InputError&) {
                    ++errors[t];
                }
            }
        });
    for (auto& thread : threads) thread.join();
    for (std::size_t t = 0; t < sums.size(); ++t) {
        CHECK(sums[t] == 5 * (20 * 1000 + 19 * 10));
        CHECK(errors[t] == 5);
    }
}
