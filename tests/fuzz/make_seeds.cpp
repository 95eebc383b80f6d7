/// Writes the seeds of the fuzz targets: make_fuzz_seeds tests/fuzz/corpus
#include "bags/bag_image.hpp"
#include "core/math/rng_hd.hpp"
#include "io/las/laslib.hpp"
#include "io/laz_image.hpp"
#include "io/write/point_sink.hpp"
#include "model/class_map.hpp"
#include "sim/sensor/sensor.hpp"
#include "temp_dir.hpp"
#include "tiling/points/point_codec.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/object_store.hpp"
#include "tiling/store/splat_payload.hpp"

#include <cstdio>

using namespace citysplat;
namespace fs = std::filesystem;

namespace {

/// The corpus folder: the current directory, so that no path needs to be passed around.
fs::path at(const std::string& target, const std::string& name) {
    fs::create_directories(target);
    return fs::path(target) / name;
}

void text(const std::string& target, const std::string& name, std::string_view content) {
    FileWriter out(at(target, name));
    out.text(content);
    out.finish();
}

PointBatch few_points() {
    PointBatch b;
    for (int i = 0; i < 3; ++i) {
        b.x.push_back(i), b.y.push_back(2 * i), b.z.push_back(-i);
        b.gps_time.push_back(i), b.intensity.push_back(7), b.label.push_back(6), b.instance.push_back(1);
        b.sensor.push_back({1, 2, 3});
    }
    return b;
}

void point_files() {
    for (int format = 0; format <= 10; ++format)
        test::las_image(format >= 6 ? 4 : 2, format, 3).write(at("las", "format" + std::to_string(format)));
    test::las_image(5, 6, 2, 0,
                    {{"LASF_Projection", 2112, "PROJCS[\"x\",GEOGCS[\"g\"],UNIT[\"foot\",0.3048]]"}})
        .write(at("las", "wkt"));
    test::las_image(2, 1, 2, 0,
                    {{"LASF_Projection", 34735, std::string("\1\0\1\0\0\0\1\0\0\x0c\0\0\1\0\x6a\x08", 16)}})
        .write(at("las", "geotiff"));
    SinkOptions options;
    options.wide_labels = true;
    for (const auto& sink : {create_las(at("las", "ours"), options), create_ply(at("ply", "ours"))}) {
        sink->write(few_points());
        sink->finish();
    }
    test::laz_image(3).write(at("laz", "fixed"));
    test::laz_image(4, true).write(at("laz", "variable"));
    test::BagImage{}.write(at("mcap", "plain"));
    test::BagImage{.compression = io::ChunkCompression::zstd, .with_tf = false, .with_odometry = true}.write(
        at("mcap", "zstd"));
    const std::string xyz = "property float x\nproperty float y\nproperty double z\nproperty uchar label\n";
    text("ply", "ascii",
         "ply\nformat ascii 1.0\ncomment offset Pos 1 2 3\nelement vertex 2\n" + xyz +
             "end_header\n1 2 3 4\n5 6 7 8\n");
    text("ply", "big",
         "ply\nformat binary_big_endian 1.0\nelement vertex 1\n" + xyz + "end_header\n" +
             std::string(17, '\x40'));
    const std::string pcd =
        "VERSION 0.7\nFIELDS x y z i\nSIZE 4 4 4 4\nTYPE F F F F\nWIDTH 2\nHEIGHT 1\nVIEWPOINT 1 0 0 1 0 0 "
        "0\nPOINTS 2\n";
    text("pcd", "ascii", pcd + "DATA ascii\n1 2 3 4\nnan 2 3 1\n");
    text("pcd", "binary", pcd + "DATA binary\n" + std::string(32, '\x40'));
    text("pcd", "compressed",
         pcd + "DATA binary_compressed\n" + std::string("\x05\0\0\0\x20\0\0\0\x00\x40\xe0\x16\x00", 13));
    text("text", "names", "x,y,z,label\n1,2,3,4\n5,6,7,8\n");
    text("text", "plain", "# c\n1 2 3\n4 5 6\n");
    text("text", "pts", "1\n1 2 3 4 5 6 7\n");
}

/// Twenty points whose every byte behind the coordinates is random, with two extra bytes each.
test::LasImage rough_points(int format) {
    constexpr std::uint32_t kPoints = 20;
    test::LasImage image = test::las_image(format >= 6 ? 4 : 3, format, kPoints, 2);
    const std::size_t record = io::kLasRecordBytes[static_cast<std::size_t>(format)] + 2u;
    const std::size_t times = format == 0 || format == 2 ? record : format >= 6 ? 22 : 20;
    for (std::size_t i = 0; i < kPoints * record; ++i)
        if (i % record >= 12 && (i % record < times || i % record >= times + 8))
            image.bytes[image.points_offset() + i] = static_cast<std::byte>(rng::bits(7, i));
    return image;
}

/// LAZ with points that the decoder has to work for. Written by LASlib; without it the old ones stay.
void compressed_files() {
    if (!io::laslib_available()) return;
    for (const int format : {0, 1, 2, 3, 6, 7, 8, 9, 10})
        fs::rename(io::replace_by_laz(
                       rough_points(format).write(at("laz", "format" + std::to_string(format) + ".las"))),
                   at("laz", "format" + std::to_string(format)));
}

/// A city with one generation of one tile and one input: its catalog and the record of the generation.
void city_files() {
    const test::TempDir directory;
    const tiling::CityPaths paths(directory.path());
    tiling::ObjectStore store{paths};
    store.create_layout();
    tiling::GenerationRow generation;
    generation.id = 1;
    generation.note = "seed";
    generation.tile_size_m = 64;
    tiling::CitySource source;
    source.row.format = "LAS";
    tiling::ProductRow tile;
    tiling::Catalog::create(paths.catalog());
    {
        tiling::Catalog catalog = tiling::Catalog::open_to_write(paths.catalog());
        catalog.add_products(std::span(&tile, 1));
        tiling::InputRow input;
        input.path = "/a.las";
        input.source = catalog.add_sources(std::span(&source, 1)).front();
        tiling::publish_generation(catalog, store, generation, std::span(&input, 1), std::span(&tile, 1));
    }
    const auto copy = [](const fs::path& from, const std::string& target, const std::string& name) {
        const auto bytes = read_file(from);
        text(target, name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    copy(paths.catalog(), "catalog", "one");
    const Hash128 record = tiling::Catalog::open_to_read(paths.catalog()).latest()->record;
    copy(store.open(record, "seed").path(), "record", "one");
}

void other_inputs() {
    text("trajectory", "tum", "# c\n1 2 3 4 0 0 0 1\n2 3 3 4 0 0 0 1\n");
    text("trajectory", "kitti", "1 0 0 5 0 1 0 6 0 0 1 7\n1 0 0 6 0 1 0 6 0 0 1 7\n");
    text("trajectory", "csv", "time,x,y,z,roll,pitch,heading_deg\n1,2,3,4,0,0,90\n2,3,3,4,0,0,91\n");
    std::string sbet(17 * 8, '\0');
    const double record[3]{1, 0.8, 0.05};
    std::memcpy(sbet.data(), record, sizeof record);
    text("trajectory", "sbet", sbet);
    text("class_map", "asprs", ClassMap::load("asprs").to_toml().substr(0, 400));
    text("class_map", "small",
         "name='a'\nversion=1\n[unlisted]\nname='u'\ngroup='ground'\n[[class]]\nlabel=3\nname='x'\ngroup='"
         "linear'\ndynamic=true\ncolour='#010203'\n");
    for (const auto& name : sim::Sensor::builtin_names()) {
        const std::string toml = sim::Sensor::builtin_text(name);
        if (toml.size() < 3000) text("sensor", name, toml);
    }
    std::vector<TilePoint> points{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {2, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
    std::vector<std::byte> coded{std::byte{1}, std::byte{2}, std::byte{0}};
    tiling::encode_points(points, coded);
    text("point_codec", "two", {reinterpret_cast<const char*>(coded.data()), coded.size()});
    const test::TempDir directory;
    tiling::ObjectStore store{tiling::CityPaths(directory.path())};
    store.create_layout();
    const std::vector<Splat> splats(2, Splat{.x = 1,
                                             .y = 2,
                                             .z = 3,
                                             .normal = 4,
                                             .radius = 5,
                                             .label = 6,
                                             .intensity = 7,
                                             .point_count = 8,
                                             .group = SplatGroup::ground,
                                             .range = 1,
                                             .incidence = 2,
                                             .instance = 0});
    const SplatTile tile({1, 2, 3}, splats);
    tiling::PayloadInfo info;
    info.digest = tile.digest();
    info.box = tiling::box_of(tile);
    std::uint64_t bytes = 0;
    const Hash128 name = tiling::write_payload(store, tiling::product_of(tile), info, bytes);
    store.flush();
    const auto payload = read_file(store.open(name, "seed").path());
    text("payload", "two", {reinterpret_cast<const char*>(payload.data()), payload.size()});
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: make_fuzz_seeds CORPUS_DIR\n");
        return 2;
    }
    fs::create_directories(argv[1]);
    fs::current_path(argv[1]);
    point_files();
    compressed_files();
    other_inputs();
    city_files();
}
