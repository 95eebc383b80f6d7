#include "core/error.hpp"
#include "io/crs/crs.hpp"
#include "io/crs/known_crs.hpp"
#include "io/input/open_point_file.hpp"
#include "io/las_image.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace citysplat;
using Catch::Contains;
using test::las_image;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A descriptor of the extra bytes record.
std::string extra_field(const std::string& name, int type) {
    std::string d(192, '\0');
    d[2] = static_cast<char>(type);
    d.replace(4, name.size(), name);
    return d;
}

template <class... T>
std::string u16s(T... values) {
    std::string out;
    for (const int v : {static_cast<int>(values)...})
        out += static_cast<char>(v & 255), out += static_cast<char>(v >> 8);
    return out;
}

std::string message_of(const test::LasImage& image, ReadOptions options = {}) {
    test::TempDir dir;
    try {
        const auto file = open_point_file(image.write(dir / "a.las"), options);
        PointBatch batch;
        for (std::size_t i = 0; i < file->block_count(); ++i) file->read_block(i, batch);
    } catch (const InputError& e) {
        return e.what();
    }
    return "(no error)";
}

}  // namespace

TEST_CASE("every version and point format of LAS is read, field by field") {
    test::TempDir dir;
    for (int minor = 0; minor <= 5; ++minor)
        for (int format = 0; format <= (minor >= 4 ? 10 : 5); ++format) {
            INFO("LAS 1." << minor << " format " << format);
            const auto file = open_point_file(las_image(minor, format, 40).write(dir / "a.las"));
            CHECK(file->info().format ==
                  "LAS 1." + std::to_string(minor) + ", point format " + std::to_string(format));
            REQUIRE(file->info().points == 40);
            PointBatch b;
            file->read_block(0, b);
            REQUIRE(b.size() == 40);
            CHECK(b.x[7] == Approx(100.07));
            CHECK(b.y[7] == Approx(200.14));
            CHECK(b.z[7] == Approx(-0.07));
            CHECK(b.intensity[7] == 1007);
            CHECK(b.label[19] == 19);
            CHECK(b.scan_angle_deg[0] == Approx(format >= 6 ? 3 : -3));
            CHECK(b.gps_time.empty() == (format == 0 || format == 2));
            if (!b.gps_time.empty()) CHECK(b.gps_time[7] == 1007);
        }
}

TEST_CASE("flags beside the class do not leak into it") {
    test::TempDir dir;
    auto old = las_image(2, 0, 1);
    old.set<std::uint8_t>(old.points_offset() + 15, 0x80 | 0x20 | 6);
    auto extended = las_image(4, 6, 1);
    extended.set<std::uint8_t>(extended.points_offset() + 15, 4)
        .set<std::uint8_t>(extended.points_offset() + 16, 200);
    PointBatch b;
    open_point_file(old.write(dir / "a.las"))->read_block(0, b);
    CHECK(b.label[0] == 6);
    CHECK(b.withheld[0] == 1);
    open_point_file(extended.write(dir / "b.las"))->read_block(0, b);
    CHECK(b.label[0] == 200);
    CHECK(b.withheld[0] == 1);
}

TEST_CASE("extra bytes are found by name, whatever their type") {
    test::TempDir dir;
    const std::string fields =
        extra_field("other", 10) + extra_field("instance", 5) + extra_field("Label", 3);
    auto image = las_image(4, 6, 2, 14, {{"LASF_Spec", 4, fields}});
    const std::size_t second = image.points_offset() + 44 + 30;
    image.set<std::uint32_t>(second + 8, 77).set<std::uint16_t>(second + 12, 300);
    const auto file = open_point_file(image.write(dir / "a.las"));
    CHECK(file->info().columns == std::vector<std::string>{"other", "instance", "Label"});
    PointBatch b;
    file->read_block(0, b);
    CHECK(b.instance[1] == 77);
    CHECK(b.label[1] == 300);
    CHECK_THAT(
        message_of(image.set<std::uint16_t>(second + 12, 65535)),
        Contains(
            "point 1: the label (extra bytes \"Label\") is 65535; expected a whole number from 0 to 65534"));
}

TEST_CASE("half a sensor position and bytes behind the points are noted") {
    test::TempDir dir;
    const auto half =
        las_image(4, 6, 2, 16, {{"LASF_Spec", 4, extra_field("sensor_x", 10) + extra_field("sensor_y", 10)}});
    const auto file = open_point_file(half.write(dir / "half.las"));
    CHECK_FALSE(file->info().has_sensor);
    CHECK_THAT(file->info().notes.at(0), Contains("sensor position lacks some of x, y and z"));
    auto low = las_image(2, 1, 10);
    low.set<std::uint32_t>(107, 7).set<std::uint32_t>(111, 7);
    const auto fewer = open_point_file(low.write(dir / "low.las"));
    CHECK(fewer->info().points == 7);
    CHECK_THAT(fewer->info().notes.at(0), Contains("84 bytes behind the last point") && Contains("3 more"));
}

TEST_CASE("coordinate systems come from WKT or GeoTIFF keys, with their unit") {
    test::TempDir dir;
    const std::string feet =
        "COMPD_CS[\"Oregon + height\",PROJCS[\"NAD83 / Oregon LCC "
        "(ft)\",GEOGCS[\"NAD83\",UNIT[\"degree\",0.0174532925199433]],"
        "UNIT[\"foot\",0.3048,AUTHORITY[\"EPSG\",\"9002\"]],AUTHORITY[\"EPSG\",\"2994\"]],VERT_CS[\"h\",UNIT["
        "\"metre\",1]]]";
    const auto path = las_image(4, 6, 3, 0, {{"LASF_Projection", 2112, feet}}).write(dir / "wkt.las");
    CHECK_THROWS_WITH(open_point_file(path),
                      Contains("foot") && Contains("0.3048") && Contains("--units scale"));
    ReadOptions options;
    options.units = ReadOptions::Units::scale;
    auto file = open_point_file(path, options);
    CHECK(file->info().crs_name == "Oregon + height, scaled to metres");
    CHECK(file->info().crs == "LOCAL_CS[\"Oregon + height, scaled to metres\",UNIT[\"metre\",1]]");
    CHECK(file->info().unit == "metre");
    PointBatch b;
    file->read_block(0, b);
    CHECK(b.x[2] == Approx(100.02 * 0.3048));
    CHECK(b.z[2] == Approx(-0.02));  // heights are in metres
    options.units = ReadOptions::Units::as_is;
    file = open_point_file(path, options);
    CHECK(file->info().crs == feet);
    file->read_block(0, b);
    CHECK(b.x[2] == Approx(100.02));

    const std::string keys = u16s(1, 1, 0, 3, 1024, 0, 1, 1, 3072, 0, 1, 2154, 3076, 0, 1, 9001);
    file = open_point_file(las_image(2, 1, 3, 0, {{"LASF_Projection", 34735, keys}}).write(dir / "geo.las"));
    CHECK(file->info().crs == "EPSG:2154");
    CHECK(file->info().unit == "metre");
    const std::string degrees = u16s(1, 1, 0, 2, 1024, 0, 1, 2, 2048, 0, 1, 4326);
    CHECK_THROWS_WITH(
        open_point_file(las_image(2, 1, 3, 0, {{"LASF_Projection", 34735, degrees}}).write(dir / "deg.las")),
        Contains("degrees") && Contains("reproject"));
}

TEST_CASE("US survey feet are recognised by EPSG code, by WKT and by GeoTIFF keys") {
    test::TempDir dir;
    constexpr double kSurveyFoot_m = 1200.0 / 3937.0;
    const auto with_keys = [&](const char* name, const std::string& keys) {
        return las_image(2, 1, 3, 0, {{"LASF_Projection", 34735, keys}}).write(dir / name);
    };
    const std::string wkt =
        "PROJCS[\"NAD83 / New York Long Island (ftUS)\",GEOGCS[\"NAD83\",DATUM[\"North_American_Datum_1983\","
        "SPHEROID[\"GRS 1980\",6378137,298.257222101]],PRIMEM[\"Greenwich\",0],UNIT[\"degree\","
        "0.0174532925199433]],PROJECTION[\"Lambert_Conformal_Conic_2SP\"],PARAMETER[\"latitude_of_origin\","
        "40.1666666666667],PARAMETER[\"central_meridian\",-74],PARAMETER[\"standard_parallel_1\","
        "41.0333333333333],PARAMETER[\"standard_parallel_2\",40.6666666666667],PARAMETER[\"false_easting\","
        "984250],PARAMETER[\"false_northing\",0],UNIT[\"US survey foot\",0.304800609601219]]";
    const std::vector<std::filesystem::path> files{
        with_keys("code.las", u16s(1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 2263)),
        with_keys("unit.las", u16s(1, 1, 0, 3, 1024, 0, 1, 1, 3072, 0, 1, 32767, 3076, 0, 1, 9003)),
        las_image(4, 6, 3, 0, {{"LASF_Projection", 2112, wkt}}).write(dir / "wkt.las")};
    ReadOptions scale;
    scale.units = ReadOptions::Units::scale;
    for (const auto& path : files) {
        INFO(path);
        CHECK_THROWS_WITH(open_point_file(path), Contains("US survey foot") && Contains("--units scale"));
        PointBatch b;
        open_point_file(path, scale)->read_block(0, b);
        CHECK(b.x[2] == Approx(100.02 * kSurveyFoot_m).epsilon(1e-12));
        CHECK(b.z[2] == Approx(-0.02 * kSurveyFoot_m).epsilon(1e-12));
    }
    // A code given by the user says the unit as well.
    ReadOptions assigned;
    assigned.crs = "EPSG:2263";
    const auto silent = las_image(2, 1, 3).write(dir / "silent.las");
    CHECK_THROWS_WITH(open_point_file(silent, assigned), Contains("US survey foot"));
    assigned.crs = "EPSG:999998";
    CHECK_THROWS_WITH(open_point_file(silent, assigned), Contains("PROJ"));
    // Heights may have a unit of their own: metres in the plane, US survey feet above it (EPSG:6360).
    const auto mixed =
        with_keys("mixed.las", u16s(1, 1, 0, 3, 1024, 0, 1, 1, 3072, 0, 1, 32618, 4096, 0, 1, 6360));
    PointBatch b;
    open_point_file(mixed, scale)->read_block(0, b);
    CHECK(b.x[2] == Approx(100.02));
    CHECK(b.z[2] == Approx(-0.02 * kSurveyFoot_m).epsilon(1e-12));
}

TEST_CASE("two texts of one coordinate system are the same system") {
    using io::same_crs;
    const std::string lambert = *io::wkt_of_known_crs("EPSG:2154");
    CHECK(same_crs("EPSG:2154", lambert));
    CHECK(same_crs("EPSG:2154", "EPSG:5698"));        // Lambert-93, and the same with heights
    CHECK_FALSE(same_crs("EPSG:5698", "EPSG:5699"));  // two systems of heights
    CHECK_FALSE(same_crs("EPSG:2154", "EPSG:32631"));
    CHECK_FALSE(same_crs("EPSG:32618", "EPSG:2263"));
    // Not in PROJ's eyes a system, but the code tells.
    CHECK(same_crs("PROJCS[\"x\",UNIT[\"metre\",1],AUTHORITY[\"EPSG\",\"2154\"]]", "EPSG:2154"));
}

TEST_CASE("a coordinate system can be assigned to a file that does not say, not against one that does") {
    test::TempDir dir;
    ReadOptions options;
    options.crs = "EPSG:2154";
    CHECK(open_point_file(las_image(2, 1, 3).write(dir / "a.las"), options)->info().crs == "EPSG:2154");
    const std::string keys = u16s(1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 32631);
    const auto other = las_image(2, 1, 3, 0, {{"LASF_Projection", 34735, keys}}).write(dir / "b.las");
    CHECK_THROWS_WITH(open_point_file(other, options), Contains("32631") && Contains("2154"));
    options.crs = "Lambert";
    CHECK_THROWS_AS(open_point_file(dir / "a.las", options), UsageError);
}

TEST_CASE("damaged LAS files are refused with the byte or point and what was expected") {
    const auto image = [] { return las_image(2, 1, 10); };
    const auto modern = [] { return las_image(4, 6, 10); };
    const std::uint32_t begin = image().points_offset();
    CHECK_THAT(message_of(image().cut(0)), Contains("empty"));
    CHECK_THAT(message_of(image().cut(100)), Contains("cut off") && Contains("100 bytes"));
    CHECK_THAT(message_of(modern().cut(300)), Contains("cut off"));
    CHECK_THAT(message_of(image().text(0, "LASX")), Contains("LASF"));
    CHECK_THAT(message_of(image().set<std::uint8_t>(25, 9)), Contains("version 1.9"));
    CHECK_THAT(message_of(image().set<std::uint8_t>(24, 2)), Contains("version 2.2"));
    CHECK_THAT(message_of(image().set<std::uint16_t>(94, 200)), Contains("header size 200"));
    CHECK_THAT(message_of(image().set<std::uint16_t>(94, 60000)), Contains("60000"));
    CHECK_THAT(message_of(image().set<std::uint32_t>(96, 50)), Contains("offset to point data 50"));
    CHECK_THAT(message_of(image().set<std::uint32_t>(96, 0xfffffff0u)), Contains("4294967280"));
    CHECK_THAT(message_of(image().set<std::uint32_t>(100, 1000000000)),
               Contains("1000000000 variable length records"));
    CHECK_THAT(message_of(image().set<std::uint8_t>(104, 11)), Contains("point format 11"));
    CHECK_THAT(message_of(las_image(3, 6, 10)), Contains("point format 6 does not exist in LAS 1.3"));
    CHECK_THAT(message_of(image().set<std::uint16_t>(105, 27)),
               Contains("record length 27") && Contains("28"));
    CHECK_THAT(message_of(image().set<std::uint32_t>(107, 11)),
               Contains("claims 11 points") && Contains("ends after 10"));
    CHECK_THAT(message_of(modern().set<std::uint64_t>(247, std::uint64_t{1} << 62)),
               Contains("4611686018427387904 points"));
    CHECK_THAT(message_of(modern().set<std::uint32_t>(107, 7)),
               Contains("disagrees with the legacy count 7"));
    CHECK_THAT(message_of(image().set(131, 0.0)), Contains("x scale 0"));
    CHECK_THAT(message_of(image().set(139, kNan)), Contains("y scale nan"));
    CHECK_THAT(message_of(image().set(147, std::numeric_limits<double>::infinity())),
               Contains("z scale inf"));
    CHECK_THAT(message_of(image().set(155, kNan)), Contains("x offset"));
    CHECK_THAT(message_of(image().set(179, -1e9)), Contains("bounds of x"));
    CHECK_THAT(message_of(image().set(187, kNan)), Contains("bounds of x"));
    CHECK_THAT(message_of(image().set<std::int32_t>(begin + 28 * 3, 2000000000)),
               Contains("point 3") && Contains("x = 20000100") && Contains("bounds of the header"));
    CHECK_THAT(message_of(image().set(begin + 28 * 4 + 20, kNan)),
               Contains("point 4") && Contains("GPS time"));
    CHECK_THAT(message_of(modern().set<std::uint32_t>(243, 1).set<std::uint64_t>(235, 10)),
               Contains("byte 235"));
    CHECK_THAT(message_of(modern().set<std::uint32_t>(243, 1).set<std::uint64_t>(235, 375 + 300)),
               Contains("byte 243"));
    CHECK_THAT(message_of(modern().set<std::uint32_t>(243, 4000000000u).set<std::uint64_t>(235, 375 + 300)),
               Contains("4000000000"));
}

TEST_CASE("damaged records of variable length are refused") {
    const auto with = [](const test::LasVlrImage& v, std::uint16_t extra = 0) {
        return las_image(4, 6, 2, extra, {v});
    };
    auto longer = with({"a", 1, "payload"});
    longer.set<std::uint16_t>(375 + 20, 60000);
    CHECK_THAT(message_of(longer), Contains("length 60000") && Contains("variable length record 1"));
    CHECK_THAT(message_of(with({"LASF_Spec", 4, std::string(100, 'x')})), Contains("multiple of 192"));
    CHECK_THAT(message_of(with({"LASF_Spec", 4, extra_field("wide", 10)}, 4)),
               Contains("\"wide\"") && Contains("record of 34"));
    CHECK_THAT(message_of(with({"LASF_Spec", 4, extra_field("odd", 99)}, 4)), Contains("data type 99"));
    CHECK_THAT(message_of(with({"LASF_Projection", 34735, u16s(1, 1, 0, 500)})), Contains("claims 500 keys"));
    CHECK_THAT(message_of(with({"LASF_Projection", 34735, u16s(1, 1, 0, 1, 1026, 34737, 50, 3)})),
               Contains("key 1026") && Contains("34737"));
    CHECK_THAT(message_of(with({"LASF_Projection", 34735, ""})), Contains("(no error)"));
}

TEST_CASE("salvage reads what is there and counts every lost point") {
    test::TempDir dir;
    ReadOptions salvage;
    salvage.salvage = true;
    const auto cut = las_image(2, 1, 100'000).cut(227 + 28 * 70'000 + 5).write(dir / "a.las");
    const auto file = open_point_file(cut, salvage);
    CHECK(file->info().points == 70'000);
    CHECK(file->info().points_lost == 30'000);
    std::uint64_t points = 0;
    PointBatch b;
    for (std::size_t i = 0; i < file->block_count(); ++i) file->read_block(i, b), points += b.size();
    CHECK(points == 70'000);

    auto image = las_image(2, 1, 10);
    image.set(image.points_offset() + 28 * 4 + 20, kNan)
        .set<std::int32_t>(image.points_offset() + 28 * 6, 2000000000);
    open_point_file(image.write(dir / "b.las"), salvage)->read_block(0, b);
    CHECK(b.size() == 8);
    CHECK(b.damaged == 2);
    CHECK(b.gps_time[4] == 1005);  // order is kept
}

TEST_CASE("a header whose bounds miss nearly all points is wrong about the bounds, not about the points") {
    test::TempDir dir;
    auto image = las_image(2, 1, 10);
    for (std::size_t i = 0; i < 6; ++i) image.set(179 + 8 * i, i % 2 ? -5e7 : -4.9e7);
    const auto file = open_point_file(image.write(dir / "a.las"));
    CHECK_THAT(file->info().notes.at(0), Contains("bounds in the header are wrong"));
    CHECK_FALSE(file->info().bounds_known);
    PointBatch b;
    file->read_block(0, b);
    CHECK(b.size() == 10);
}

TEST_CASE(
    "return numbers that cannot be are noted, not refused: nobody uses them, and many files have them") {
    test::TempDir dir;
    auto image = las_image(2, 1, 10);
    image.set<std::uint8_t>(image.points_offset() + 14, 1);  // 1 of 0: common
    CHECK(open_point_file(image.write(dir / "a.las"))->info().notes.empty());
    image.set<std::uint8_t>(image.points_offset() + 28 * 5 + 14, 3 | 2 << 3);
    const auto file = open_point_file(image.write(dir / "a.las"));
    CHECK_THAT(file->info().notes.at(0), Contains("1 of 10 points") && Contains("3 of 2"));
    PointBatch b;
    file->read_block(0, b);
    CHECK(b.size() == 10);
}

TEST_CASE("labels in a file of their own replace those inside, and must be as many as the points") {
    test::TempDir dir;
    const auto las = las_image(2, 1, 3).write(dir / "a.las");
    const auto write = [&](const char* name, const std::string& content) {
        FileWriter out(dir / name);
        out.text(content);
        out.finish();
        return dir / name;
    };
    ReadOptions options;
    PointBatch b;
    options.labels = write("a.label", u16s(7, 1, 252, 2, 9, 0));
    open_point_file(las, options)->read_block(0, b);
    CHECK(b.label == std::vector<std::uint16_t>{7, 252, 9});
    CHECK(b.instance == std::vector<std::uint16_t>{1, 2, 0});
    options.labels = write("a.txt", "# labels\n1\n2\n65534\n");
    open_point_file(las, options)->read_block(0, b);
    CHECK(b.label == std::vector<std::uint16_t>{1, 2, 65534});
    options.labels =
        write("a.npy", std::string("\x93NUMPY\x01\x00", 8) + u16s(54) +
                           "{'descr': '|u1', 'fortran_order': False, 'shape': (3,),}\n" + "\x04\x05\x06");
    CHECK_THROWS_AS(open_point_file(las, options), InputError);  // header length 54, but 58 bytes
    options.labels = write("b.label", u16s(7, 1, 252, 2));
    CHECK_THROWS_WITH(open_point_file(las, options), Contains("2 labels for a cloud of 3 points"));
    options.labels = write("c.label", "12345");
    CHECK_THROWS_WITH(open_point_file(las, options), Contains("5 bytes"));
    options.labels = write("c.txt", "1\n65535\n3\n");
    CHECK_THROWS_WITH(open_point_file(las, options), Contains("label 1 is 65535; expected 0 to 65534"));
    options.labels = write("d.txt", "1\ntwo\n3\n");
    CHECK_THROWS_WITH(open_point_file(las, options), Contains("line 2") && Contains("two"));
}
