#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/open_point_file.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/output/scan_fields.hpp"
#include "sim/output/scan_writer.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;

namespace {

constexpr double kEast = 652000.25, kNorth = 6861000.5;

/// Returns on a spiral around the sensor; every seventh ray has none.
Scan make_scan(std::uint64_t index, std::size_t rays) {
    Scan scan;
    scan.index = index;
    scan.time_s = 300000 + 0.1 * static_cast<double>(index);
    scan.world_from_sensor = {{kEast + static_cast<double>(index), kNorth, 40},
                              from_yaw_pitch_roll(0.7, 0.02, -0.01)};
    for (std::size_t i = 0; i < rays; ++i) {
        Return r{};
        const double a = 0.01 * static_cast<double>(i);
        r.beam = static_cast<std::uint16_t>(i % 64);
        r.range_m = static_cast<float>(5 + a);
        r.time_s = static_cast<float>(1e-5 * static_cast<double>(i));
        r.position = scan.world_from_sensor.apply({(5 + a) * std::cos(a), (5 + a) * std::sin(a), -1.5});
        r.normal = {0, 0, 1};
        r.cosine = 0.5f;
        r.splat_id = rng::bits(3, i);
        r.label = static_cast<std::uint16_t>(i % 20);
        r.instance = static_cast<std::uint16_t>(i % 3 == 0 ? 60000 + i % 7 : 0);
        r.intensity = static_cast<std::uint16_t>(i % 65536);
        r.hits = 1;
        r.status = i % 7 == 0 ? RayStatus::none : RayStatus::hit;
        scan.hits += r.status == RayStatus::hit;
        scan.returns.push_back(r);
    }
    return scan;
}

std::vector<Scan> write(const ScanWriterOptions& options, std::size_t scans = 3) {
    ScanWriter writer(options);
    std::vector<Scan> made;
    for (std::size_t i = 0; i < scans; ++i) {
        made.push_back(make_scan(i, 700));
        writer.consume(made.back());
        writer.conclude(made.back());
    }
    writer.finish();
    return made;
}

PointBatch read_all(const std::filesystem::path& path) {
    const auto file = open_point_file(path);
    PointBatch all, block;
    for (std::size_t b = 0; b < file->block_count(); ++b) {
        file->read_block(b, block);
        all.x.insert(all.x.end(), block.x.begin(), block.x.end());
        all.y.insert(all.y.end(), block.y.begin(), block.y.end());
        all.z.insert(all.z.end(), block.z.begin(), block.z.end());
        all.intensity.insert(all.intensity.end(), block.intensity.begin(), block.intensity.end());
        all.label.insert(all.label.end(), block.label.begin(), block.label.end());
        all.gps_time.insert(all.gps_time.end(), block.gps_time.begin(), block.gps_time.end());
    }
    return all;
}

void require_returns(const PointBatch& points, std::span<const Scan> scans) {
    std::size_t at = 0;
    for (const Scan& scan : scans)
        for (const Return& r : scan.returns) {
            if (r.status != RayStatus::hit) continue;
            REQUIRE(at < points.size());
            REQUIRE(length(Vec3d{points.x[at], points.y[at], points.z[at]} - r.position) < 2e-4);
            REQUIRE(points.intensity[at] == r.intensity);
            REQUIRE(points.label[at] == r.label);
            REQUIRE(points.gps_time[at] ==
                    Approx(scan.time_s + static_cast<double>(r.time_s)).epsilon(1e-12));
            ++at;
        }
    REQUIRE(at == points.size());
}

}  // namespace

TEST_CASE("scans written as LAS and PLY are read back by our own readers") {
    for (const char* format : {"las", "ply"}) {
        CAPTURE(format);
        const test::TempDir directory;
        ScanWriterOptions options;
        options.directory = directory.path();
        options.format = format;
        options.accumulate = true;
        const auto scans = write(options);
        for (std::size_t i = 0; i < scans.size(); ++i)
            require_returns(read_all(directory / ("scans/00000" + std::to_string(i) + "." + format)),
                            {&scans[i], 1});
        require_returns(read_all(directory / (std::string("cloud.") + format)), scans);
    }
}

TEST_CASE("KITTI scans are in the sensor's frame: poses bring them back into the world") {
    const test::TempDir directory;
    ScanWriterOptions options;
    options.directory = directory.path();
    const auto scans = write(options);
    const Trajectory poses = read_trajectory(directory / "poses.txt");
    REQUIRE(poses.poses().size() == scans.size());
    for (std::size_t i = 0; i < scans.size(); ++i) {
        const auto bin = read_file(directory / ("velodyne/00000" + std::to_string(i) + ".bin"));
        const auto labels = read_file(directory / ("labels/00000" + std::to_string(i) + ".label"));
        REQUIRE(bin.size() == scans[i].hits * 16);
        REQUIRE(labels.size() == scans[i].hits * 4);
        CHECK(poses.poses()[i].time_s == Approx(scans[i].time_s));
        std::size_t at = 0;
        for (const Return& r : scans[i].returns) {
            if (r.status != RayStatus::hit) continue;
            float p[4];
            std::uint32_t label;
            std::memcpy(p, bin.data() + 16 * at, 16);
            std::memcpy(&label, labels.data() + 4 * at, 4);
            const Vec3d world = poses.poses()[i].world_from_body.apply(
                {static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2])});
            REQUIRE(length(world - r.position) < 1e-4);
            REQUIRE(label == (r.label | std::uint32_t{r.instance} << 16));
            ++at;
        }
    }
}

TEST_CASE("the records of a scan are the same in one piece and in many, in every format") {
    const Scan scan = make_scan(2, 5001);
    CloudLayout layout;
    layout.offset_m = {652000, 6861000, 0};
    for (const char* name : {"las", "ply", "pcd", "kitti", "kitti labels", "xyz"}) {
        const auto format = make_scan_format(name);
        const auto records = [&](std::size_t piece) {
            std::vector<std::byte> bytes(scan.returns.size() * format->most_record_bytes());
            std::byte* end = bytes.data();
            io::CloudSummary summary;
            for (std::size_t begin = 0; begin < scan.returns.size(); begin += piece)
                format->append({scan, begin, std::min(begin + piece, scan.returns.size())}, layout, end,
                               summary);
            bytes.resize(static_cast<std::size_t>(end - bytes.data()));
            return std::pair(bytes, format->header(layout, summary));
        };
        INFO(name);
        const auto whole = records(scan.returns.size());
        CHECK(whole.first.size() >= 4 * scan.hits);
        CHECK(whole == records(2048));
        CHECK(whole == records(77));
    }
}

TEST_CASE("the files of a KITTI scan of many pieces have a record for each return") {
    const test::TempDir directory;
    ScanWriterOptions options;
    options.directory = directory / "run";
    options.format = "kitti";
    ScanWriter writer(options);
    const Scan scan = make_scan(0, 9000);
    writer.consume(scan);
    writer.conclude(scan);
    writer.finish();
    const std::string points = read_text_file(options.directory / "velodyne" / "000000.bin"),
                      labels = read_text_file(options.directory / "labels" / "000000.label");
    REQUIRE(points.size() == 16 * scan.hits);
    REQUIRE(labels.size() == 4 * scan.hits);
    CHECK(writer.bytes() == points.size() + labels.size());
    std::size_t at = 0;
    for (const Return& r : scan.returns) {
        if (r.status != RayStatus::hit) continue;
        float intensity = 0;
        std::uint32_t label = 0;
        std::memcpy(&intensity, points.data() + 16 * at + 12, 4);
        std::memcpy(&label, labels.data() + 4 * at++, 4);
        REQUIRE(intensity == static_cast<float>(r.intensity) * (1.0f / 65535.0f));
        REQUIRE(label == (r.label | static_cast<std::uint32_t>(r.instance) << 16));
    }
}

TEST_CASE("the class and the instance of every return come back from every format") {
    for (const std::string format : {"las", "ply", "pcd", "xyz", "kitti"}) {
        CAPTURE(format);
        const test::TempDir directory;
        ScanWriterOptions options;
        options.directory = directory / "run";
        options.format = format;
        const std::vector<Scan> scans = write(options, 1);
        const bool kitti = format == "kitti";
        ReadOptions reading;
        if (kitti) reading.labels = options.directory / "labels/000000.label";
        const auto file = open_point_file(
            options.directory / (kitti ? "velodyne/000000.bin" : "scans/000000." + format), reading);
        std::vector<std::pair<std::uint16_t, std::uint16_t>> read, written;
        PointBatch block;
        for (std::size_t b = 0; b < file->block_count(); ++b) {
            file->read_block(b, block);
            REQUIRE(block.instance.size() == block.size());
            for (std::size_t i = 0; i < block.size(); ++i)
                read.emplace_back(block.label[i], block.instance[i]);
        }
        for (const Return& r : scans[0].returns)
            if (r.status == RayStatus::hit) written.emplace_back(r.label, r.instance);
        CHECK(read == written);
    }
}

TEST_CASE("rays without return are kept on request") {
    const test::TempDir directory;
    ScanWriterOptions options;
    options.directory = directory.path();
    options.format = "xyz";
    options.keep_all = true;
    write(options, 1);
    const std::string text = read_text_file(directory / "scans/000000.xyz");
    CHECK(std::count(text.begin(), text.end(), '\n') == 1 + 700);  // the names of the columns first
}

TEST_CASE("a PCD header names fields, sizes and counts that match its records") {
    const test::TempDir directory;
    ScanWriterOptions options;
    options.directory = directory.path();
    options.format = "pcd";
    const auto scans = write(options, 1);
    const auto bytes = read_file(directory / "scans/000000.pcd");
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t data = text.find("DATA binary\n") + 12;
    const std::size_t sizes = text.find("SIZE ");
    std::size_t record = 0;
    for (std::size_t i = sizes + 5; text[i] != '\n'; ++i)
        if (text[i] != ' ') record += static_cast<std::size_t>(text[i] - '0');
    CHECK(text.find("POINTS " + std::string(12 - std::to_string(scans[0].hits).size(), '0') +
                    std::to_string(scans[0].hits)) != std::string::npos);
    CHECK(bytes.size() - data == scans[0].hits * record);
}

TEST_CASE("the documentation tells the fields of a return as the table has them") {
    const std::string page = read_text_file(CITYSPLAT_SOURCE_DIR "/docs/sensors.md");
    constexpr const char* kTypes[]{"u8", "u16", "u32", "i32", "f32", "f64"};
    std::set<std::string> names;
    constexpr auto kAlways = kReturnFields.fields();
    constexpr auto kRecorded = kRecordedFields.fields();
    std::vector<io::Field> fields(kAlways.begin(), kAlways.end());
    fields.insert(fields.end(), kRecorded.begin(), kRecorded.end());
    constexpr auto kNumbers = kNumberFields.fields();
    fields.insert(fields.end(), kNumbers.begin(), kNumbers.end());
    for (const io::Field& field : fields) {
        INFO(field.name);
        CHECK(names.insert(field.name).second);
        CHECK(std::string_view(field.meaning).size() <= 32);  // what LAS has room for
        const std::string row = "\n| " + std::string(field.name) + " | " +
                                kTypes[static_cast<std::size_t>(field.type)] + " | " + field.unit + " |";
        CHECK_THAT(page, Catch::Contains(row));
    }
    CHECK(kReturnFields.kBytes == 44);
    CHECK(kRecordedFields.kBytes == 4);
    CHECK(names.size() == 19);
}

TEST_CASE("how surfaces were recorded is written on request") {
    for (const std::string format : {"las", "ply", "pcd", "xyz"}) {
        const auto bytes_of = [&format](bool recorded) {
            const test::TempDir dir;
            ScanWriterOptions options;
            options.directory = dir / "scans";
            options.format = format;
            options.recorded = recorded;
            options.planned_scans = 1;
            write(options, 1);
            const auto bytes = read_file(options.directory / ("scans/000000." + format));
            return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        };
        const std::string without = bytes_of(false), with = bytes_of(true);
        INFO(format);
        CHECK(without.find("recorded_") == std::string::npos);
        for (const char* name : {"recorded_intensity", "recorded_range", "recorded_incidence"})
            CHECK(with.find(name) != std::string::npos);
        CHECK(with.size() >= without.size() + 4 * make_scan(0, 700).hits);
    }
}

TEST_CASE("formats without a place for how surfaces were recorded refuse to leave it out") {
    const test::TempDir dir;
    ScanWriterOptions options;
    options.directory = dir / "scans";
    options.format = "kitti";
    options.recorded = true;
    CHECK_THROWS_WITH(ScanWriter(options), Catch::Contains("--recorded") && Catch::Contains("ply"));
    options.accumulate = true;  // the cloud has them
    CHECK_NOTHROW(ScanWriter(options));
}

TEST_CASE("returns of one pulse are numbered by range in every format that can") {
    // Three pulses: the second return is nearer; farther; absent. The fourth has none at all.
    Scan scan = make_scan(0, 8);
    scan.returns_per_pulse = 2;
    for (std::size_t i = 0; i < 4; ++i) {
        scan.returns[i].range_m = 10;
        scan.returns[4 + i].range_m = i == 0 ? 5.0f : 15.0f;
        scan.returns[i].status = i < 3 ? RayStatus::hit : RayStatus::none;
        scan.returns[4 + i].status = i < 2 ? RayStatus::hit : RayStatus::none;
    }
    struct Expected {
        std::uint32_t pulse;
        int number, of;
    };
    const std::vector<Expected> expected{{0, 2, 2}, {1, 1, 2}, {2, 1, 1}, {0, 1, 2}, {1, 2, 2}};
    for (const std::string format : {"las", "ply", "pcd", "xyz"})
        for (const bool keep_all : {false, true}) {
            const test::TempDir dir;
            ScanWriterOptions options;
            options.directory = dir / "scans";
            options.format = format;
            options.several = true;
            options.keep_all = keep_all;
            ScanWriter writer(options);
            writer.consume(scan);
            writer.conclude(scan);
            writer.finish();
            const auto bytes = read_file(options.directory / ("scans/000000." + format));
            const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            std::vector<Expected> all = expected;
            if (keep_all) all.insert(all.begin() + 3, {3, 1, 1});
            INFO(format << keep_all);
            const std::size_t record = kReturnFields.kBytes + (format == "las" ? 30 : 34 + 2);
            std::istringstream lines(text);
            std::string line;
            std::getline(lines, line);
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (format == "xyz") {
                    CHECK(line.ends_with(" return_number number_of_returns") == (i == 0));
                    std::getline(lines, line);
                    CHECK(line.ends_with(" " + std::to_string(all[i].number) + " " +
                                         std::to_string(all[i].of)));
                    continue;
                }
                const std::byte* at = bytes.data() + bytes.size() - (all.size() - i) * record;
                const std::byte* numbers = format == "las" ? at + 14 : at + record - 2;
                const auto low = static_cast<int>(numbers[0]);
                CHECK((format == "las" ? low & 15 : low) == all[i].number);
                CHECK((format == "las" ? low >> 4 : static_cast<int>(numbers[1])) == all[i].of);
                std::uint32_t pulse = 0;  // the field "ray", behind range, time, normal and incidence
                std::memcpy(&pulse, at + (format == "las" ? 30 : 34) + 24, sizeof pulse);
                CHECK(pulse == all[i].pulse);
            }
        }
}
