#include "view/ortho.hpp"

#include "cli/small_city.hpp"
#include "core/error.hpp"
#include "model/region/region_source.hpp"
#include "sim/memory_city.hpp"
#include "tiling/store/city_reader.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace citysplat;
namespace test = citysplat::test;
using nlohmann::json;

namespace {

view::OrthoOptions fine(view::Shade shade, double resolution_m, int samples = 1) {
    view::OrthoOptions options;
    options.shade = shade;
    options.resolution_m = resolution_m;
    options.samples = samples;
    return options;
}

bool same(const Rgb& a, const Rgb& b) { return a.r == b.r && a.g == b.g && a.b == b.b; }

}  // namespace

TEST_CASE("pictures of tiles are one large picture, cut") {
    // A resolution that the tiles are no multiple of, far from 0.
    const test::MemoryCity city(test::street(650'003, 6'860'007, 24), 8, test::Splits::mixed);
    const auto tracer = trace::make_group_tracer();
    const CancelToken cancel;
    for (const auto shade : {view::Shade::intensity, view::Shade::classes, view::Shade::height}) {
        view::OrthoCamera camera(city, *tracer, fine(shade, 0.07, shade == view::Shade::height ? 2 : 1));
        const LatticeBox all{to_lattice(650'000), to_lattice(6'859'992), to_lattice(650'032),
                             to_lattice(6'860'024)};
        const view::OrthoWindow large = camera.window_of(all);
        const view::OrthoPicture whole = camera.take(large, cancel);
        CHECK(whole.seen > 40'000);
        std::uint64_t pixels = 0, differing = 0;
        const TileGrid grid(8);
        for (std::int64_t x = 650'000; x < 650'032; x += 8)
            for (std::int64_t y = 6'859'992; y < 6'860'024; y += 8) {
                const view::OrthoWindow window = camera.window_of(
                    grid.core(grid.base_tile_of(x * kLatticePerMetre, y * kLatticePerMetre)));
                const view::OrthoPicture part = camera.take(window, cancel);
                for (std::int64_t row = 0; row < window.rows; ++row)
                    for (std::int64_t column = 0; column < window.columns; ++column, ++pixels) {
                        const auto in_x = window.first_column - large.first_column + column,
                                   in_y = large.first_row + large.rows - window.first_row - window.rows + row;
                        const bool opaque =
                            part.opaque[static_cast<std::size_t>(row * window.columns + column)];
                        differing +=
                            opaque !=
                                (whole.opaque[static_cast<std::size_t>(in_y * large.columns + in_x)] != 0) ||
                            !same(part.picture.at(static_cast<int>(column), static_cast<int>(row)),
                                  whole.picture.at(static_cast<int>(in_x), static_cast<int>(in_y)));
                    }
            }
        CHECK(pixels == static_cast<std::uint64_t>(large.columns * large.rows));
        CHECK(differing == 0);
    }
    CHECK_THROWS_AS(view::OrthoCamera(city, *tracer, fine(view::Shade::range, 0.1)), UsageError);
}

TEST_CASE("a disc is drawn where it lies, the upper one over the lower one") {
    const std::vector<test::WorldDisc> discs{{{100.5, 40.25, 2}, {0, 0, 1}, 0.5, 1, 10'000},
                                             {{100.5, 40.25, 7}, {0, 0, 1}, 0.2, 1, 60'000}};
    const test::MemoryCity city(discs, 64);
    const auto tracer = trace::make_group_tracer();
    view::OrthoCamera camera(city, *tracer, fine(view::Shade::intensity, 0.02));
    const view::OrthoWindow window =
        camera.window_of({to_lattice(99), to_lattice(39), to_lattice(102), to_lattice(42)});
    const RasterFrame frame = camera.frame_of(window);
    CHECK(std::abs(frame.west_m - 99) < 1e-9);
    CHECK(std::abs(frame.north_m - 42) < 1e-9);
    const view::OrthoPicture made = camera.take(window, CancelToken());
    std::uint64_t wrong = 0, judged = 0;
    for (int row = 0; row < frame.height; ++row)
        for (int column = 0; column < frame.width; ++column) {
            const double x = frame.west_m + (column + 0.5) * 0.02, y = frame.north_m - (row + 0.5) * 0.02,
                         far = std::hypot(x - 100.5, y - 40.25);
            if (std::abs(far - 0.5) < 0.001 || std::abs(far - 0.2) < 0.001) continue;  // on an edge
            const bool opaque = made.opaque[static_cast<std::size_t>(row * frame.width + column)];
            const int bright = made.picture.at(column, row).r;
            ++judged;
            wrong += far < 0.2 ? !(opaque && bright > 200) : far < 0.5 ? !(opaque && bright < 120) : opaque;
        }
    CHECK(judged > 20'000);
    CHECK(wrong == 0);
}

TEST_CASE("road markings are within a pixel of where they were painted") {
    const test::SmallCity small;
    const tiling::CityReader city(small.city);
    const auto tracer = trace::make_group_tracer();
    constexpr double kPixel_m = 0.02;
    view::OrthoCamera camera(city, *tracer, fine(view::Shade::classes, kPixel_m));
    // The drive begins in a street: a line in its middle, and those of the parking lanes 3.35 m beside it.
    const Trajectory trajectory = Trajectory::read_tum(small.trajectory);
    const Vec3d begin = trajectory.poses().front().world_from_body.translation,
                end = trajectory.poses().back().world_from_body.translation;
    const json origin = json::parse(std::ifstream(small.drive + "/truth.json"))["origin_m"];
    const bool east = std::abs(end.x - begin.x) > std::abs(end.y - begin.y);
    const double from = origin[east ? 1 : 0],
                 middle = from + 80 * std::round(((east ? begin.y : begin.x) - from) / 80),
                 low = std::min(east ? begin.x : begin.y, east ? end.x : end.y),
                 high = std::max(east ? begin.x : begin.y, east ? end.x : end.y);
    for (const double side : {-3.35, 0.0, 3.35}) {
        const auto box = [&](double low_side, double high_side) {
            return east ? LatticeBox{to_lattice(low), to_lattice(middle + side + low_side), to_lattice(high),
                                     to_lattice(middle + side + high_side)}
                        : LatticeBox{to_lattice(middle + side + low_side), to_lattice(low),
                                     to_lattice(middle + side + high_side), to_lattice(high)};
        };
        const view::OrthoWindow window = camera.window_of(box(-0.3, 0.3));
        const RasterFrame frame = camera.frame_of(window);
        const view::OrthoPicture made = camera.take(window, CancelToken());
        // The middle of what is drawn in the colour of road lines, which is the only light grey one.
        double pixels = 0, moment = 0;
        for (int row = 0; row < frame.height; ++row)
            for (int column = 0; column < frame.width; ++column) {
                const Rgb p = made.picture.at(column, row);
                if (!made.opaque[static_cast<std::size_t>(row * frame.width + column)] ||
                    std::min({p.r, p.g, p.b}) < 170)
                    continue;
                const double at =
                    east ? frame.north_m - (row + 0.5) * kPixel_m : frame.west_m + (column + 0.5) * kPixel_m;
                ++pixels, moment += at - middle - side;
            }
        INFO("side " << side << ", " << pixels << " pixels of paint");
        REQUIRE(pixels > 100);
        CHECK(std::abs(moment / pixels) < kPixel_m);
    }
}

TEST_CASE("render --ortho writes pictures, world files and a mosaic, and says what makes no sense") {
    const test::SmallCity small;
    const json all = test::run_json({"render", small.city, "--ortho", "--resolution", "0.1", "--shade",
                                     "class", "--per-tile", "--out", small.dir / "maps"});
    REQUIRE(all["files"].size() > 2);
    CHECK(all["pixels_seen"] > 10'000);
    for (const auto& name : all["files"]) {
        std::filesystem::path path = name.get<std::string>();
        CHECK(std::filesystem::file_size(path) > 100);
        int level = 0, x = 0, y = 0;
        REQUIRE(std::sscanf(path.stem().c_str(), "%d_%d_%d", &level, &x, &y) == 3);
        std::ifstream world(path.replace_extension(".pgw"));
        double v[6];
        for (double& number : v) REQUIRE(world >> number);
        const double side = 32.0 / (1 << level);
        CHECK(v[0] == 0.1);
        CHECK(v[3] == -0.1);
        CHECK(std::abs(v[4] - (x * side + 0.05)) < 0.1);
        CHECK(std::abs(v[5] - ((y + 1) * side - 0.05)) < 0.1);
    }
    CHECK(std::filesystem::exists(all["mosaic"].get<std::string>()));
    const json one = test::run_json(
        {"render", small.city, "--ortho", "--resolution", "0.1", "--out", small.dir / "one.png"});
    CHECK(one["pixels_seen"] == all["pixels_seen"]);
    const auto refuses = [&](std::vector<std::string> more, const std::string& named) {
        more.insert(more.begin(), {"render", small.city, "--out", small.dir / "no.png"});
        const test::Outcome outcome = test::citysplat(more);
        INFO(outcome.err);
        CHECK(outcome.exit_code == 2);
        CHECK_THAT(outcome.err, Catch::Contains(named));
    };
    refuses({"--ortho", "--pose", "0,0,0"}, "--pose has no meaning with --ortho");
    refuses({"--resolution", "1", "--pose", "0,0,0"}, "--resolution belongs to --ortho");
    refuses({"--ortho", "--resolution", "0"}, "--resolution");
    refuses({"--ortho", "--resolution", "0.001"}, "--per-tile");
    refuses({"--ortho", "--heights", "5,5"}, "--heights");
    refuses({"--ortho", "--shade", "range"}, "no ranges");
    refuses({"--ortho", "--bounds", "9000,9000,9001,9001"}, "nothing of the city is there");
}
