/// The broken files of the world as a table: what is wrong, how to make one, and what the message has to say.
/// Every message names the file; where it applies byte, line or point, the field, its value and what was
/// expected. No reader may ask for more memory than the file is large, whatever its header claims.
#include "core/error.hpp"
#include "io/input/open_point_file.hpp"
#include "io/las/chunk_decoder.hpp"
#include "io/laz_image.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

using namespace citysplat;
using Catch::Contains;
using test::las_image;
using test::LasImage;
using test::laz_image;

namespace {

std::atomic<std::size_t> largest_request{0};

void count(std::size_t bytes) {
    std::size_t before = largest_request.load();
    while (bytes > before && !largest_request.compare_exchange_weak(before, bytes)) {
    }
}

}  // namespace

#ifdef __SANITIZE_ADDRESS__
// The sanitizer has operators of its own, and tells of every request. (gcc does not install its header.)
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                                         void (*)(const volatile void*));
namespace {
const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t bytes) { count(bytes); }, [](const volatile void*) {});
}
#else
namespace {
void* counted(std::size_t bytes) {
    count(bytes);
    if (void* memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
    std::string what;
    std::string file;  ///< its name decides what it is taken for
    std::string content;
    std::vector<std::string> says;
};

std::string bytes_of(const LasImage& image) {
    return {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()};
}

Case las(std::string what, const LasImage& image, std::vector<std::string> says) {
    return {std::move(what), "bad.las", bytes_of(image), std::move(says)};
}
Case laz(std::string what, const LasImage& image, std::vector<std::string> says) {
    return {std::move(what), "bad.laz", bytes_of(image), std::move(says)};
}

std::string extra_field(const std::string& name, int type) {
    std::string d(192, '\0');
    d[2] = static_cast<char>(type);
    d.replace(4, name.size(), name);
    return d;
}

/// A 16-bit field that is to be multiplied.
std::string scaled_field(const std::string& name, double scale) {
    std::string d = extra_field(name, 3);
    d[3] = 8;
    std::memcpy(d.data() + 112, &scale, sizeof scale);
    return d;
}

std::string u16s(std::initializer_list<int> values) {
    std::string out;
    for (const int v : values) out += static_cast<char>(v & 255), out += static_cast<char>(v >> 8);
    return out;
}

std::vector<Case> las_cases() {
    const auto old = [] { return las_image(2, 1, 10); };
    const auto modern = [] { return las_image(4, 6, 10); };
    const auto with = [](const test::LasVlrImage& v, std::uint16_t extra = 0) {
        return las_image(4, 6, 2, extra, {v});
    };
    auto long_vlr = with({"a", 1, "payload"});
    long_vlr.set<std::uint16_t>(375 + 20, 60000);
    const std::size_t points = old().points_offset();
    return {
        las("zero-length file", old().cut(0), {"empty"}),
        las("truncated header", old().cut(100), {"100 bytes", "at least 227"}),
        las("truncated header of LAS 1.4", modern().cut(300), {"300 of its 375 bytes"}),
        las("wrong magic", old().text(0, "LASX"), {"byte 0", "signature LASF"}),
        las("future minor version", old().set<std::uint8_t>(25, 9),
            {"byte 24", "1.9", "expected 1.0 to 1.5"}),
        las("future major version", old().set<std::uint8_t>(24, 2),
            {"byte 24", "2.2", "expected 1.0 to 1.5"}),
        las("header size too small", old().set<std::uint16_t>(94, 200), {"byte 94", "200", "at least 227"}),
        las("header size beyond the file", old().set<std::uint16_t>(94, 60000), {"60000 bytes", "507"}),
        las("points inside the header", old().set<std::uint32_t>(96, 50), {"byte 96", "50", "expected 227"}),
        las("points beyond the file", old().set<std::uint32_t>(96, 0xfffffff0u),
            {"byte 96", "4294967280", "507 (end of file)"}),
        las("count × record overflows", modern().set<std::uint64_t>(247, std::uint64_t{1} << 62),
            {"4611686018427387904 points", "30 bytes", "ends after 10"}),
        las("more points than the file holds", old().set<std::uint32_t>(107, 11),
            {"11 points", "28 bytes", "byte 227", "ends after 10"}),
        las("counts that disagree", modern().set<std::uint32_t>(107, 7),
            {"byte 247", "10", "legacy count 7"}),
        las("fewer points in all than by return",
            old().set<std::uint32_t>(107, 9).set<std::uint32_t>(111, 10),
            {"byte 107", "9", "10 counted by return"}),
        las("impossible record length", old().set<std::uint16_t>(105, 27), {"byte 105", "27", "at least 28"}),
        las("unknown point format", old().set<std::uint8_t>(104, 11), {"byte 104", "11", "expected 0 to 10"}),
        las("point format newer than the version", las_image(3, 6, 10), {"byte 104", "6", "1.3", "1.4"}),
        las("10⁹ variable length records", old().set<std::uint32_t>(100, 1000000000),
            {"byte 100", "1000000000", "only 0 fit"}),
        las("record of variable length beyond its place", long_vlr,
            {"record 1 at byte 375", "60000", "byte 436"}),
        las("extended records before the points",
            modern().set<std::uint32_t>(243, 1).set<std::uint64_t>(235, 10),
            {"byte 235", "byte 10", "expected 675"}),
        las("extended records beyond the file",
            modern().set<std::uint32_t>(243, 1).set<std::uint64_t>(235, 1 << 20),
            {"byte 235", "1048576", "675 (end of file)"}),
        las("4·10⁹ extended records",
            modern().set<std::uint32_t>(243, 4000000000u).set<std::uint64_t>(235, 675),
            {"byte 243", "4000000000", "only 0 fit"}),
        las("20 000 empty extended records",
            modern().set<std::uint32_t>(243, 20'000).set<std::uint64_t>(235, 675).cut(675 + 60 * 20'000),
            {"byte 243", "20000 extended", "at most 10000"}),
        las("extra bytes beyond the record", with({"LASF_Spec", 4, extra_field("wide", 10)}, 4),
            {"\"wide\"", "byte 38", "34 bytes"}),
        las("extra bytes of an unknown type", with({"LASF_Spec", 4, extra_field("odd", 99)}, 4),
            {"\"odd\"", "99", "expected 0 to 30"}),
        las("extra bytes record of odd length", with({"LASF_Spec", 4, std::string(100, 'x')}),
            {"byte 429", "100", "multiple of 192"}),
        las("extra bytes with a scale of NaN", with({"LASF_Spec", 4, scaled_field("label", kNan)}, 2),
            {"\"label\"", "scale nan", "finite"}),
        las("extra bytes whose label is no whole number",
            with({"LASF_Spec", 4, scaled_field("label", 0.5)}, 2).set<std::uint16_t>(375 + 54 + 192 + 30, 3),
            {"point 0", "\"label\"", "0 to 65534"}),
        las("GeoTIFF directory that is cut off", with({"LASF_Projection", 34735, "1234567"}),
            {"byte 429", "7 bytes", "at least 8"}),
        las("GeoTIFF key in an unknown record",
            with({"LASF_Projection", 34735, u16s({1, 1, 0, 1, 3072, 12345, 1, 0})}),
            {"byte 429", "key 3072", "record 12345", "34737"}),
        las("GeoTIFF directory that claims more keys than it has",
            with({"LASF_Projection", 34735, u16s({1, 1, 0, 500})}), {"byte 429", "500 keys", "room for 0"}),
        las("GeoTIFF key that points nowhere",
            with({"LASF_Projection", 34735, u16s({1, 1, 0, 1, 1026, 34737, 50, 3})}),
            {"byte 429", "key 1026", "items 3 to 53", "34737"}),
        las("scale of zero", old().set(131, 0.0), {"byte 131", "x scale 0", "other than 0"}),
        las("scale of NaN", old().set(139, kNan), {"byte 139", "y scale nan", "finite"}),
        las("scale of infinity", old().set(147, kInf), {"byte 147", "z scale inf", "finite"}),
        las("offset of NaN", old().set(155, kNan), {"byte 155", "x offset nan", "finite"}),
        las("inverted bounds", old().set(179, -1e9), {"byte 179", "bounds of x", "-1000000000", "in order"}),
        las("bounds of NaN", old().set(187, kNan), {"byte 179", "bounds of x", "nan", "finite"}),
        las("point far outside the bounds", old().set<std::int32_t>(points + 28 * 3, 2000000000),
            {"point 3", "x = 20000100", "bounds of the header, 100 to 100.09", "--salvage",
             "--ignore-bounds"}),
        las("point a little outside the bounds", old().set<std::int32_t>(points + 28 * 3 + 8, -120),
            {"point 3", "z = -1.2", "bounds of the header, -0.09 to 0"}),
        las("GPS time of NaN", old().set(points + 28 * 4 + 20, kNan),
            {"point 4", "GPS time is nan", "finite"}),
    };
}

std::vector<Case> laz_cases() {
    const auto good = [] { return laz_image(5); };
    const std::size_t record = good().record_at, table = good().table_at, points = good().points_offset();
    auto zeroed = good();
    std::fill(zeroed.bytes.begin() + static_cast<std::ptrdiff_t>(table + 8), zeroed.bytes.end(),
              std::byte{0});
    auto promising = good();  // one chunk that claims more points than it holds
    promising.set<std::uint32_t>(record + 12, 50'000)
        .set<std::uint32_t>(table + 4, 1)
        .set<std::uint32_t>(107, 50'000);
    const std::string at_table = "byte " + std::to_string(table),
                      at_points = "byte " + std::to_string(points);
    return {
        laz("chunk table of 2³² − 1 chunks", good().set<std::uint32_t>(table + 4, 0xffffffffu),
            {at_table, "4294967295 chunks", "only 6 fit"}),
        laz("chunk table of another size", good().set<std::uint32_t>(table + 4, 4),
            {at_table, "4 chunks", "expected 5"}),
        laz("chunk table of an unknown version", good().set<std::uint32_t>(table, 7),
            {at_table, "version 7", "expected 0"}),
        laz("chunk table at −1, and none at the end", good().set<std::int64_t>(points, -1),
            {at_points, "chunk table at byte", "expected"}),
        laz("chunk table at −2", good().set<std::int64_t>(points, -2), {at_points, "byte -2", "expected"}),
        laz("chunk table beyond the file", good().set<std::int64_t>(points, 1'000'000),
            {at_points, "byte 1000000", "expected"}),
        laz("zeroed chunk table", zeroed, {"chunk 0", "0 bytes", "first point of 20"}),
        laz("no LASzip record", good().text(227 + 2, "something else"), {"no LASzip record", "22204"}),
        laz("chunk size of 0", good().set<std::uint32_t>(record + 12, 0), {"chunk 0", "cannot hold"}),
        laz("compressor from the future", good().set<std::uint16_t>(record, 9),
            {"byte 281", "compressor 9", "expected 1 to 3"}),
        laz("unknown coder", good().set<std::uint16_t>(record + 2, 3), {"byte 281", "coder 3", "expected 0"}),
        laz("items of another point format", good().set<std::uint16_t>(record + 34, 10),
            {"byte 281", "item 1 has type 10", "has 6"}),
        laz("items of another length", good().set<std::uint16_t>(record + 36, 99),
            {"byte 281", "99 bytes", "20"}),
        laz("more points than the chunks hold", good().set<std::uint32_t>(107, 4000000000u),
            {at_table, "5 chunks", "4000000000 points"}),
        laz("cut off in the chunk table", good().cut(table + 9), {at_table, "cut off"}),
        laz("cut off before the chunks", good().cut(points + 4), {at_points, "ends before"}),
        laz("chunk that ends before its points do", promising, {"chunk 0 at byte 329", "points from 0"}),
        laz("LASzip 1 of 2010", good().set<std::uint16_t>(record, 1), {"LASzip 1", "2010", "LASlib"}),
        laz("items of LASzip 1", good().set<std::uint16_t>(record + 38, 1), {"version 1 (2010)", "LASlib"}),
    };
}

std::vector<Case> ply_cases() {
    const std::string xyz = "property float x\nproperty float y\nproperty float z\n",
                      ascii = "ply\nformat ascii 1.0\nelement vertex 1\n",
                      binary = "ply\nformat binary_little_endian 1.0\nelement vertex 2\n";
    std::string swapped = "ply\nformat binary_little_endian 1.0\nelement vertex 50\n" + xyz + "end_header\n";
    for (int i = 0; i < 150; ++i) {
        const float value = 100.5f + static_cast<float>(i);
        char raw[4];
        std::memcpy(raw, &value, 4);
        swapped += {raw[3], raw[2], raw[1], raw[0]};
    }
    const auto ply = [](std::string what, std::string content, std::vector<std::string> says) {
        return Case{std::move(what), "bad.ply", std::move(content), std::move(says)};
    };
    return {
        ply("PLY without end_header", ascii + xyz, {"end_header", "89 bytes"}),
        ply("PLY of another name", "plx\n", {"byte 0", "expected \"ply\""}),
        ply("10¹⁸ vertices of text",
            "ply\nformat ascii 1.0\nelement vertex 1000000000000000000\n" + xyz + "end_header\n1 2 3\n",
            {"1000000000000000000 vertices", "ends after 1"}),
        ply("10¹⁸ vertices of bytes",
            "ply\nformat binary_little_endian 1.0\nelement vertex 1000000000000000000\n" + xyz +
                "end_header\n123456789012",
            {"1000000000000000000 points", "ends after 1"}),
        ply("\"abc\" vertices", "ply\nformat ascii 1.0\nelement vertex abc\n",
            {"line 3", "\"abc\"", "number"}),
        ply("−1 vertices", "ply\nformat ascii 1.0\nelement vertex -1\n", {"line 3", "\"-1\"", "number"}),
        ply("list property on vertices", ascii + xyz + "property list uchar int more\nend_header\n1 2 3 0\n",
            {"list property \"more\"", "not supported"}),
        ply("no z", ascii + "property float x\nproperty float y\nend_header\n1 2\n",
            {"no column \"z\"", "x, y"}),
        ply("unknown format", "ply\nformat text 1.0\nend_header\n", {"line 2", "\"text\"", "expected ascii"}),
        ply("unknown property type", ascii + "property quad x\nend_header\n", {"line 4", "\"quad\""}),
        ply("future version", "ply\nformat ascii 2.0\n", {"line 2", "2.0", "expected 1.0"}),
        ply("two formats", ascii + "format ascii 1.0\n", {"line 4", "second \"format\""}),
        ply("format behind the properties, whose places it decides",
            "ply\nelement vertex 1\n" + xyz + "format binary_little_endian 1.0\nend_header\n" +
                std::string(12, '\0'),
            {"line 2", "element in front of the \"format\""}),
        ply("vertices twice", ascii + xyz + "element vertex 2\n", {"line 7", "\"vertex\"", "twice"}),
        ply("more text than vertices", ascii + xyz + "end_header\n1 2 3\n4 5 6\n",
            {"claims 1 points", "byte 106", "--salvage"}),
        ply("more bytes than vertices", binary + xyz + "end_header\n" + std::string(36, '\x40'),
            {"claims 2 points", "1 more", "byte 139", "--salvage"}),
        ply("bytes in the other order", swapped, {"big-endian", "header"}),
        ply("truncated last vertex", binary + xyz + "end_header\n" + std::string(20, 'x'),
            {"2 points", "12 bytes", "ends after 1"}),
        ply("NaN coordinate", ascii + xyz + "end_header\n1 2 nan\n", {"point 0", "z = nan"}),
        ply("coordinate of 1e400", ascii + xyz + "end_header\n1 2 1e400\n", {"line 8", "1e400"}),
        ply("decimal commas", ascii + xyz + "end_header\n1,5 2,5 3,5\n",
            {"line 8", "6 numbers", "expected 3", "comma"}),
    };
}

std::vector<Case> other_cases() {
    const auto pcd = [](const std::string& rest) {
        return "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\n" + rest;
    };
    return {
        {"PCD of width 0", "bad.pcd", pcd("WIDTH 0\nHEIGHT 1\nPOINTS 5\nDATA ascii\n"), {"POINTS 5", "is 0"}},
        {"PCD without a header", "bad.pcd", "1 2 3\n4 5 6\n", {"line 1", "\"1\"", "PCD header"}},
        {"PCD of a future version", "bad.pcd", "VERSION 1.0\n", {"line 1", "1.0", "expected 0.5 to 0.7"}},
        {"PCD with more points than it claims",
         "bad.pcd",
         pcd("WIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA ascii\n1 2 3\n4 5 6\n"),
         {"claims 1 points", "more follow", "--salvage"}},
        {"PCD whose size overflows",
         "bad.pcd",
         pcd("WIDTH 18446744073709551615\nHEIGHT 16\nDATA binary\n"),
         {"18446744073709551615", "16", "impossible"}},
        {"PCD with 10⁹ points in 12 bytes",
         "bad.pcd",
         pcd("WIDTH 1000000000\nHEIGHT 1\nPOINTS 1000000000\nDATA binary\n123456789012"),
         {"1000000000 points", "12 bytes", "ends after 1"}},
        {"compressed PCD that lies about its size",
         "bad.pcd",
         pcd("WIDTH 300000000\nHEIGHT 1\nPOINTS 300000000\nDATA binary_compressed\n") +
             std::string("\x04\0\0\0\x00\xa4\x93\xd6\1\2\3\4", 12),
         {"4 compressed bytes", "3600000000"}},
        {"KITTI scan that is no multiple of 16 bytes",
         "bad.bin",
         std::string(30, '\0'),
         {"30 bytes", "16 bytes", "--salvage"}},
        {"text with a word among the numbers", "bad.xyz", "1 2 3\n4 five 6\n", {"line 2", "five"}},
        {"text with decimal commas", "bad.xyz", "1,5;2,5;3,5\n", {"line 1", "decimal commas"}},
        {"text with decimal commas and blanks", "bad.xyz", "1,5 2,5 3,5\n", {"line 1", "decimal commas"}},
        {"text with an empty column", "bad.csv", "1,,3,4\n", {"line 1", "empty"}},
        {"text with carriage returns alone", "bad.xyz", "1 2 3\r4 5 6\r", {"line 1", "carriage return"}},
        {"text that begins with 1e400", "bad.xyz", "1e400 2 3\n", {"line 1", "1e400", "representable"}},
        {"text of one long word", "bad.xyz", std::string(100000, 'a') + "\n", {"no column \"x\"", "…"}},
        {"text without lines", "bad.xyz", "# nothing\n", {"no line"}},
        {"PTS that claims more points than it has", "bad.pts", "3\n1 2 3\n", {"line 1", "3 points", "has 1"}},
        {"PTS that claims fewer points than it has", "bad.pts", "1\n1 2 3\n4 5 6\n", {"1 points", "has 2"}},
        {"text with a short line", "bad.xyz", "1 2 3\n4 5\n", {"line 2", "2 numbers", "expected 3"}},
    };
}

/// What the reader says about the file, "(no error)" when it reads all of it.
std::string message_of(const std::filesystem::path& path, const ReadOptions& options = {}) {
    try {
        const auto file = open_point_file(path, options);
        PointBatch batch;
        for (std::size_t i = 0; i < file->block_count(); ++i) file->read_block(i, batch);
    } catch (const Error& e) {
        return e.what();
    }
    return "(no error)";
}

std::filesystem::path write(const std::filesystem::path& path, std::string_view content) {
    FileWriter out(path);
    out.text(content);
    out.finish();
    return path;
}

/// What a reader may hold besides the file: its buffers and tables.
constexpr std::size_t kRoom = std::size_t{2} << 20;

void check(const std::vector<Case>& cases) {
    const test::TempDir dir;
    for (const Case& c : cases) {
        INFO(c.what);
        const auto path = write(dir / c.file, c.content);
        largest_request = 0;
        ReadOptions options;
        options.reader = ReadOptions::Reader::native;
        const std::string message = message_of(path, options);
        CHECK(largest_request.load() < c.content.size() + kRoom);
        CHECK_THAT(message, Contains(path.string()));
        for (const auto& part : c.says) CHECK_THAT(message, Contains(part));
    }
}

/// Flips every `step`-th bit of a small LAZ file: it is refused, or there are as many points as the header
/// says, none of them outside its bounds.
void flip_bits(std::size_t step) {
    if (!io::laz_available()) {
        WARN("skipped: this build has no LAZ decoder");
        return;
    }
    const test::TempDir dir(test::memory_directory());
    const std::string good = bytes_of(laz_image(5));
    for (std::size_t bit = 0; bit < 8 * good.size(); bit += step) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
        const auto path = write(dir / "bad.laz", bad);
        INFO("bit " << bit);
        for (const bool salvage : {false, true}) {
            ReadOptions options;
            options.salvage = salvage;
            largest_request = 0;
            try {
                const auto file = open_point_file(path, options);
                PointBatch b;
                std::uint64_t seen = 0;
                for (std::size_t i = 0; i < file->block_count(); ++i) {
                    file->read_block(i, b);
                    seen += b.size() + b.damaged;
                    if (file->info().bounds_known)
                        for (const double x : b.x) REQUIRE((x >= file->info().bounds.min.x - 1.001));
                }
                REQUIRE(seen == file->info().points);
            } catch (const Error& e) {
                REQUIRE_THAT(e.what(), Contains("bad.laz"));
            }
            REQUIRE(largest_request.load() < good.size() + kRoom);
        }
    }
}

}  // namespace

TEST_CASE("broken LAS files are named: byte or point, field, value, expectation") { check(las_cases()); }

TEST_CASE("broken LAZ files are named, and nothing of them is believed") {
    if (!io::laz_available()) {
        WARN("skipped: this build has no LAZ decoder");
        return;
    }
    check(laz_cases());
}

TEST_CASE("a flipped bit of a LAZ file is refused or leaves points inside the bounds") { flip_bits(97); }

TEST_CASE("any flipped bit of a LAZ file is refused or leaves points inside the bounds", "[slow]") {
    flip_bits(1);
}

TEST_CASE("broken PLY files are named by line or point") { check(ply_cases()); }

TEST_CASE("broken PCD, KITTI and text files are named") { check(other_cases()); }

TEST_CASE("labels of another length are refused with both numbers") {
    const test::TempDir dir;
    const auto cloud = las_image(2, 0, 3).write(dir / "a.las");
    ReadOptions options;
    options.labels = write(dir / "a.label", std::string(8, '\0'));
    CHECK_THAT(message_of(cloud, options),
               Contains(options.labels.string()) && Contains("2 labels for a cloud of 3 points"));
    options.labels = write(dir / "b.label", std::string(13, '\0'));
    CHECK_THAT(message_of(cloud, options), Contains("13 bytes") && Contains("4-byte labels"));
}

TEST_CASE("broken trajectories are named by pose or line") {
    const test::TempDir dir;
    const auto message = [&](const char* name, const std::string& content) -> std::string {
        try {
            (void)read_trajectory(write(dir / name, content));
        } catch (const Error& e) {
            return e.what();
        }
        return "(no error)";
    };
    const std::string unsorted = message("unsorted", "2 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n");
    CHECK_THAT(unsorted, Contains("unsorted") && Contains("pose 2") && Contains("1.0") && Contains("2.0"));
    std::string drive;
    for (int i = 0; i < 50; ++i)
        drive += std::to_string(i < 25 ? i : i + 600) + " " + std::to_string(10 * i) + " 0 0 0 0 0 1\n";
    CHECK_THAT(message("gap", drive), Contains("poses 25 and 26") && Contains("601") && Contains("hole"));
    CHECK_THAT(message("nan", "1 0 0 nan 0 0 0 1\n"), Contains("pose 1") && Contains("nan"));
    CHECK_THAT(message("far", "1 1e12 0 0 0 0 0 1\n"), Contains("pose 1") && Contains("not on Earth"));
    for (const char* w : {"0", "5"})
        CHECK_THAT(message("rotation", std::string("1 0 0 0 0 0 0 ") + w + "\n2 0 0 0 0 0 0 1\n"),
                   Contains("pose 1") && Contains(w) && Contains("expected 1"));
    CHECK_THAT(message("angle", "time,x,y,z,heading_deg\n1,0,0,0,1e99\n"),
               Contains("line 2") && Contains("heading") && Contains("1000 turns"));
    CHECK_THAT(message("roll", "time,x,y,z,heading_rad,pitch_rad,roll_rad\n1,0,0,0,1,0,90\n"),
               Contains("line 2") && Contains("roll 90 rad; expected at most 1 turn"));
    CHECK_THAT(message("twice", "time,x,X,y,z,heading_deg\n1,0,0,0,0,90\n"),
               Contains("line 1") && Contains("\"X\" is there twice"));
    CHECK_THAT(message("late", "# one\n# two\n1 2 ?\n"), Contains("line 3") && Contains("\"?\""));
    CHECK_THAT(message("sbet.out", std::string(271, '\x01')), Contains("271 bytes") && Contains("136"));
}
