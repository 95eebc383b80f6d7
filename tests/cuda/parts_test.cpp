#include "cuda/rig.hpp"
#include "sim/part_rig.hpp"
#include "sim/test_drive.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace citysplat;
using namespace citysplat::trace;
using namespace citysplat::test;

namespace {

constexpr double kEast = Place{}.east, kNorth = Place{}.north;
const Vec3d kHere{kEast + 10, kNorth, 1.5};

Track crossing(Vec3d from, Vec3d velocity, double turn_radps) {
    std::vector<StampedPose> poses;
    for (int i = 0; i <= 20; ++i) {
        const double t = 0.1 * i;
        poses.push_back({99.9 + t, {from + velocity * t, from_yaw_pitch_roll(turn_radps * t, 0.1 * t, 0)}});
    }
    return Track::along("crossing", Trajectory(poses));
}

/// A tile of the city that stands, boxes that drive, discs that turn, and one that is there for a moment.
void add_parts(Parts& parts, const MemoryCity& ball, const MemoryCity& wall) {
    const sim::Sweep sweep{100.02, 0.1};
    const auto box = parts.shape(box_mesh({4, 2, 1.5}));
    const auto discs = parts.shape(ball.load(0));
    parts.add(box, crossing(kHere + Vec3d{8, -3, -1.4}, {0, 12, 0}, 1.5), 3, sweep);
    parts.add(box, crossing(kHere + Vec3d{-9, 2, -1.4}, {15, 0, 0}, 0), 3, sweep);
    parts.add(discs, crossing(kHere + Vec3d{3, 5, -9}, {-4, -2, 0}, 2), 16, sweep);
    Part& moment = parts.add_standing(box, {kHere + Vec3d{0, -7, -1}, from_yaw_pitch_roll(0.4, 0, 0)});
    moment.from_s = 0.02f;
    moment.to_s = 0.06f;
    moment.facts.label = 77;
    const SplatTile tile = wall.load(0);
    parts.add_standing(parts.shape(tile), {tile.frame().origin_m(), {}}).facts = {};
    // Its keys end before the rays do.
    parts.add(box, crossing(kHere + Vec3d{5, 9, -1}, {3, -9, 0}, -1), 3, {100.05, 0.03});
}

TileSetPtr tiles_of(const Tracer& tracer, const MemoryCity& city) {
    std::vector<TracerTilePtr> tiles;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(tracer.load(city.load(i)));
    return tracer.bind(tiles);
}

struct Shapes {
    MemoryCity city{street(kEast, kNorth, 20, 0.5), 16};
    MemoryCity ball{ball_discs(), 16}, wall{wall_discs(), 64};

    static std::vector<WorldDisc> ball_discs() {
        std::vector<WorldDisc> discs;
        for (std::uint64_t i = 0; i < 200; ++i) {
            const Vec3d n = random_unit(9, i);
            discs.push_back({Vec3d{8, 8, 8} + n * 1.5, n, 0.3, 20});
        }
        return discs;
    }
    static std::vector<WorldDisc> wall_discs() {
        std::vector<WorldDisc> discs;
        for (int i = 0; i < 100; ++i)
            discs.push_back({kHere + Vec3d{-6, i % 10 - 5.0, i / 10 * 0.5 - 1.5}, {1, 0, 0}, 0.5, 3});
        return discs;
    }
};

}  // namespace

TEST_CASE("the programs of the device meet parts as the CPU does", "[gpu]") {
    const Shapes shapes;
    std::vector<Ray> rays;
    for (std::uint64_t i = 0; i < 1500; ++i)
        rays.push_back({kHere, vec_cast<float>(normalized(random_unit(3, i) * 0.7 + Vec3d{0, 0, -0.1})), 0.0f,
                        60, static_cast<float>(rng::uniform(4, i, 0, 0.1))});
    const auto groups = make_group_tracer();
    Parts expected_parts(*groups);
    add_parts(expected_parts, shapes.ball, shapes.wall);
    const auto city = tiles_of(*groups, shapes.city);
    const PartHits expected = ask(*groups, {*city, expected_parts}, rays, 1500);
    CHECK(std::ranges::count_if(expected.closest, [](const Hit& h) { return h.instance != 0; }) > 40);
    CHECK(std::ranges::count_if(expected.closest, [](const Hit& h) { return h.label == 77; }) > 5);
    CHECK(std::ranges::count_if(expected.closest, [](const Hit& h) { return h.label == 3; }) > 20);
    on_cpu::Script script;
    for (const std::uint64_t seed : {1u, 2u}) {
        script.manners.seed = seed;
        script.manners.nearest_first = seed == 1;
        const Rig rig(script);
        Parts parts(*rig.tracer);
        add_parts(parts, shapes.ball, shapes.wall);
        const auto tiles = tiles_of(*rig.tracer, shapes.city);
        CHECK(ask(*rig.tracer, {*tiles, parts}, rays, 700).differences(expected) == 0);
        // Parts without a city, and a city without parts in a second pass.
        PartHits passes = ask(*rig.tracer, {*rig.tracer->bind({}), parts}, rays, 1500);
        rig.tracer->closest(*tiles, rays, passes.closest);
        rig.tracer->nearest(*tiles, rays, 5, 0.1f, passes.nearest);
        CHECK(passes.differences(expected) == 0);
    }
}

TEST_CASE("a drive among moving things has the same digest on the device", "[gpu]") {
    const Shapes shapes;
    std::vector<sim::Shape> forms;
    forms.push_back({"car", box_mesh({4, 2, 1.5})});
    forms.push_back({"ball", shapes.ball.load(0)});
    std::vector<sim::Actor> actors(3);
    for (std::uint32_t i = 0; i < 3; ++i) {
        actors[i].shape = i % 2;
        actors[i].instance = static_cast<std::uint16_t>(i + 1);
        actors[i].track = crossing(kHere + Vec3d{6.0 * i - 4, i % 2 ? -9.0 : -3.0, i % 2 ? -8.0 : -1.4},
                                   {5, 6.0 * i, 0}, i);
    }
    const sim::Traffic traffic(std::move(forms), actors);
    sim::SensorRun run{small_sensor(), {}, 7};
    const Trajectory trajectory = straight_drive(4, 0.21);
    for (const std::uint32_t hits : {1u, 5u}) {
        run.hits = hits;
        const auto digest = [&](const Tracer& tracer) {
            Collector sink;
            CancelToken cancel;
            Progress progress;
            const auto report = sim::simulate(
                {shapes.city, tracer, run, trajectory, with_budget(std::uint64_t{1} << 30), &traffic}, sink,
                cancel, progress);
            CHECK(report.part_hits > 100);
            return report.digest;
        };
        CHECK(digest(*Rig({}, {0, 4000, 1 << 20}).tracer) == digest(*make_group_tracer()));
    }
}
