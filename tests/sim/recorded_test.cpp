#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "io/drive_writer.hpp"
#include "sim/recorded/beams.hpp"
#include "sim/recorded/empty_rays.hpp"
#include "sim/recorded/lesson.hpp"
#include "sim/recorded/recorded_drive.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

constexpr double kDegree = exact::kRadPerDegree;

/// A rotating head and one sweep of it, of which any part may be taken away.
struct Head {
    std::vector<double> elevation_deg;  ///< from the top
    std::vector<double> ahead_deg;      ///< azimuth of each beam before the head's; empty: none
    int columns = 900;
    double first_deg = -180, covered_deg = 360;
    enum class Cut { head, azimuth } cut = Cut::head;  ///< what passes `first_deg` when a sweep begins

    double step_deg() const { return covered_deg / columns; }
};

/// As Pandar64: close together around the horizon, few above and below.
std::vector<double> uneven_elevations() {
    std::vector<double> e{15, 11, 8, 5, 3, 2};
    for (int i = 1; i <= 48; ++i) e.push_back(2 - i / 6.0);
    for (double v = -7; v >= -14; --v) e.push_back(v);
    e.push_back(-19), e.push_back(-25);
    return e;
}

std::vector<double> even_elevations(int count, double top_deg, double step_deg) {
    std::vector<double> e;
    for (int i = 0; i < count; ++i) e.push_back(top_deg - i * step_deg);
    return e;
}

double wrapped_deg(double deg) { return deg - 360 * std::ceil(deg / 360 - 0.5); }

RecordedRay ray_to(double azimuth_deg, double elevation_deg, double range_m) {
    RecordedRay ray;
    ray.azimuth_rad = wrapped_deg(azimuth_deg) * kDegree;
    ray.elevation_rad = elevation_deg * kDegree;
    const auto az = exact::sin_cos(ray.azimuth_rad), el = exact::sin_cos(ray.elevation_rad);
    ray.direction = {el.cos * az.cos, el.cos * az.sin, el.sin};
    ray.range_m = range_m;
    return ray;
}

/// All rays of a sweep in firing order, each with its true beam; a turn takes 0.1 s. Azimuths jitter by up to
/// a twentieth of a step.
std::vector<RecordedRay> sweep_of(const Head& head, std::uint64_t seed = 1) {
    std::vector<RecordedRay> rays;
    std::uint64_t n = 0;
    for (int c = 0; c < head.columns; ++c)
        for (std::size_t b = 0; b < head.elevation_deg.size(); ++b, ++n) {
            const double ahead = head.ahead_deg.empty() ? 0 : head.ahead_deg[b];
            const double turned = (c + rng::uniform(seed, 2 * n, -0.05, 0.05)) * head.step_deg();
            const double shown = head.cut == Head::Cut::head ? turned + ahead : turned;
            RecordedRay ray =
                ray_to(head.first_deg + shown, head.elevation_deg[b], rng::uniform(seed, 2 * n + 1, 5, 60));
            ray.time_s = 1000 + (head.cut == Head::Cut::head ? turned : turned - ahead) / 3600;
            ray.beam = static_cast<std::uint16_t>(b);
            rays.push_back(ray);
        }
    std::stable_sort(rays.begin(), rays.end(),
                     [](const RecordedRay& a, const RecordedRay& b) { return a.time_s < b.time_s; });
    return rays;
}

void forget_beams(std::vector<RecordedRay>& rays) {
    for (RecordedRay& r : rays) r.beam = RecordedRay::kNoBeam;
}

/// Finds the beams of rays that know them, and says which share of the rays got their own again.
double share_found(const std::vector<RecordedRay>& rays, const BeamTable& table) {
    std::vector<RecordedRay> found = rays;
    forget_beams(found);
    assign_beams(table, found, found.size());
    std::size_t right = 0;
    for (std::size_t i = 0; i < rays.size(); ++i) right += found[i].beam == rays[i].beam;
    return static_cast<double>(right) / static_cast<double>(rays.size());
}

std::optional<BeamTable> found_in(std::vector<RecordedRay> rays) {
    forget_beams(rays);
    return find_beams(rays);
}

void check_elevations(const BeamTable& table, const std::vector<double>& elevation_deg, double margin_deg) {
    REQUIRE(table.size() == elevation_deg.size());
    for (std::size_t b = 0; b < table.size(); ++b)
        CHECK(table.elevation_rad[b] / kDegree == Approx(elevation_deg[b]).margin(margin_deg));
}

}  // namespace

TEST_CASE("the beams of an uneven head are found, though its poses are tilted and the sky returns little") {
    const Head head{uneven_elevations(), {}, 600};
    std::vector<RecordedRay> rays;
    std::uint64_t n = 0;
    for (RecordedRay ray : sweep_of(head)) {
        // The two highest beams return once in thirty times.
        if (rng::uniform(2, n++) < (ray.beam < 2 ? 0.97 : 0.2)) continue;
        const auto az = exact::sin_cos(ray.azimuth_rad);
        ray.elevation_rad += (0.08 * az.cos - 0.05 * az.sin + rng::uniform(3, n, -0.015, 0.015)) * kDegree;
        rays.push_back(ray);
    }
    const auto table = found_in(rays);
    REQUIRE(table);
    check_elevations(*table, head.elevation_deg, 0.02);
    CHECK(share_found(rays, *table) > 0.999);
    // In no order at all, the gaps between the elevations are the same.
    for (std::size_t i = rays.size(); i > 1; --i) std::swap(rays[i - 1], rays[rng::bits(4, i) % i]);
    const auto shuffled = found_in(rays);
    REQUIRE(shuffled);
    check_elevations(*shuffled, head.elevation_deg, 0.02);
}

TEST_CASE(
    "a sweep that is stored ring by ring shows its beams, though near returns are seen from elsewhere") {
    // As in an HDL-64E, the lasers sit 0.1 m above and below the head's centre: 1.1 degrees at 5 m.
    const Head head{even_elevations(64, 2, 0.4), {}, 500, 0};
    std::vector<RecordedRay> rays = sweep_of(head);
    for (RecordedRay& r : rays) {
        r.range_m = 12 + 7 * exact::sin(3 * r.azimuth_rad + r.beam);
        r.elevation_rad += (r.beam < 32 ? 0.1 : -0.1) / r.range_m;
    }
    std::stable_sort(rays.begin(), rays.end(),
                     [](const RecordedRay& a, const RecordedRay& b) { return a.beam < b.beam; });
    std::vector<RecordedRay> kept;
    for (std::size_t i = 0; i < rays.size(); ++i)
        if (rng::uniform(5, i) > 0.3) kept.push_back(rays[i]);
    // At the seam a return or two of a turn may be before the beginning, by the jitter of the azimuth.
    constexpr double kButSeam = 1 - 2.0 / 350;
    const auto table = found_in(kept);
    REQUIRE(table);
    CHECK(table->size() == 64);
    CHECK(share_found(kept, *table) > kButSeam);
    SECTION("also when beams of another sweep return nothing") {
        std::erase_if(kept, [](const RecordedRay& r) { return r.beam == 0 || r.beam == 20 || r.beam == 41; });
        CHECK(share_found(kept, *table) > kButSeam);
    }
    SECTION("also from the bottom up") {
        std::stable_sort(kept.begin(), kept.end(),
                         [](const RecordedRay& a, const RecordedRay& b) { return a.beam > b.beam; });
        CHECK(share_found(kept, *table) > kButSeam);
    }
}

TEST_CASE("beams that files number are ordered from the top and keep their numbers") {
    const Head head{even_elevations(16, 10, 1), {}, 100};
    const std::vector<RecordedRay> truth = sweep_of(head);
    std::vector<RecordedRay> rays = truth;
    for (RecordedRay& r : rays) r.beam = static_cast<std::uint16_t>(115 - r.beam);
    auto table = find_beams(rays);
    REQUIRE(table);
    check_elevations(*table, head.elevation_deg, 1e-9);
    CHECK(table->number.front() == 115);
    CHECK(table->number.back() == 100);
    assign_beams(*table, rays, rays.size());
    for (std::size_t i = 0; i < rays.size(); ++i) CHECK(rays[i].beam == truth[i].beam);
    rays[3].beam = 77;
    assign_beams(*table, std::span(rays).subspan(3, 1), 1);
    CHECK(rays[3].beam == RecordedRay::kNoBeam);
}

TEST_CASE("a scan without any return has no beams to be found") {
    const Head head{even_elevations(16, 10, 1), {}, 100};
    std::vector<RecordedRay> rays = sweep_of(head);
    forget_beams(rays);
    auto table = find_beams(rays);
    REQUIRE(table);
    assign_beams(*table, rays, 0);
    for (const RecordedRay& ray : rays) CHECK(ray.beam == RecordedRay::kNoBeam);
    assign_beams(*table, std::span<RecordedRay>(), 0);
}

TEST_CASE("a cloud without beams shows none") {
    std::vector<RecordedRay> rays;
    for (std::uint64_t i = 0; i < 20000; ++i)
        rays.push_back(ray_to(rng::uniform(1, 3 * i, -180, 180), rng::uniform(1, 3 * i + 1, -30, 30), 10));
    CHECK_FALSE(find_beams(rays));
    CHECK_FALSE(find_beams({}));
    CHECK(merged({}).size() == 0);
}

TEST_CASE("one sweep whose poses lean or that shows too much does not add beams") {
    std::vector<double> true_deg;
    for (int b = 0; b < 40; ++b) true_deg.push_back(2 - 0.17 * b);
    const auto table_of = [&](double lean_deg) {
        BeamTable table;
        for (const double e : true_deg) table.elevation_rad.push_back((e + lean_deg) * kDegree);
        return table;
    };
    std::vector<BeamTable> tables(6, table_of(0));
    tables[2] = table_of(0.07);
    tables[4].elevation_rad.insert(tables[4].elevation_rad.begin() + 11, (2 - 0.17 * 10.5) * kDegree);
    check_elevations(merged(tables), true_deg, 1e-9);
    // Rays of the leaning sweep find their beams.
    std::vector<RecordedRay> rays = sweep_of({true_deg, {}, 90});
    for (RecordedRay& ray : rays) ray.elevation_rad += 0.07 * kDegree;
    CHECK(share_found(rays, merged(tables)) > 0.99);
}

TEST_CASE("of sweeps that are stored ring by ring one that shows a ring too many does not count") {
    BeamTable usual{{}, {}, true};
    for (int b = 0; b < 64; ++b) usual.elevation_rad.push_back((2 - 0.4 * b) * kDegree);
    BeamTable more = usual, fewer = usual;
    more.elevation_rad.push_back(more.elevation_rad.back());
    fewer.elevation_rad.erase(fewer.elevation_rad.begin());
    CHECK(merged(std::vector{fewer, usual, more, usual, fewer}).elevation_rad == usual.elevation_rad);
    CHECK(merged(std::vector{fewer, fewer, usual, usual}).size() == 64);
    CHECK(merged(std::vector{fewer, usual}).size() == 64);
    // Should all that are judged show it, the sensor that is named knows better; but not about another
    // sensor.
    const Sensor sensor = Sensor::load("hdl-64e");
    const BeamTable table = beams_for(sensor, more);
    REQUIRE(table.size() == 64);
    CHECK(table.ring_by_ring);
    CHECK(std::is_sorted(table.elevation_rad.rbegin(), table.elevation_rad.rend()));
    CHECK_NOTHROW(match_beams(sensor, table));
    CHECK(beams_for(sensor, fewer).elevation_rad == fewer.elevation_rad);
    CHECK_THROWS_AS(match_beams(Sensor::load("vlp-32c"), beams_for(Sensor::load("vlp-32c"), usual)),
                    ConfigError);
}

TEST_CASE("beams that one sweep lacks are taken from another") {
    const std::vector<double> all{3 * kDegree, 2 * kDegree, 1 * kDegree, 0, -1 * kDegree};
    BeamTable a{all, {}}, b{all, {}};
    a.elevation_rad.erase(a.elevation_rad.begin() + 1);
    b.elevation_rad.erase(b.elevation_rad.begin());
    b.elevation_rad.pop_back();
    const std::vector<BeamTable> tables{a, b};
    CHECK(merged(tables).elevation_rad == all);
}

namespace {

enum class Order { fired, rings, none };

/// Takes runs of rays away, lets them be found again, and holds them against those that were taken.
void check_empty_rays(const Head& head, Order order) {
    std::vector<RecordedRay> rays = sweep_of(head);
    RecordedScan scan;
    std::multiset<std::pair<std::uint16_t, std::int64_t>> taken, found;
    const auto place = [&](const RecordedRay& r) {
        const double ahead =
            head.ahead_deg.empty() || head.cut == Head::Cut::azimuth ? 0 : head.ahead_deg[r.beam];
        const double deg = r.azimuth_rad / kDegree - head.first_deg - ahead + head.step_deg() / 2;
        return std::pair{r.beam, static_cast<std::int64_t>(
                                     std::floor((deg - 360 * std::floor(deg / 360)) / head.step_deg()))};
    };
    std::vector<int> run(head.elevation_deg.size(), 0);
    std::vector<RecordedRay> away;
    std::uint64_t n = 0;
    for (const RecordedRay& r : rays) {
        int& left = run[r.beam];
        if (left == 0 && rng::uniform(6, n++) < 0.03) left = static_cast<int>(rng::uniform(7, n++, 1, 40));
        if (left > 0) {
            --left;
            away.push_back(r);
        } else {
            scan.rays.push_back(r);
        }
    }
    if (order == Order::rings)
        std::stable_sort(scan.rays.begin(), scan.rays.end(),
                         [](const RecordedRay& a, const RecordedRay& b) { return a.beam < b.beam; });
    if (order == Order::none)
        for (std::size_t i = scan.rays.size(); i > 1; --i)
            std::swap(scan.rays[i - 1], scan.rays[rng::bits(8, i) % i]);
    scan.returns = scan.rays.size();
    const std::size_t returns = scan.returns;
    BeamTable table;
    for (const double e : head.elevation_deg) table.elevation_rad.push_back(e * kDegree);
    // A sensor that is turned by a right angle: x of the sensor is y of the world.
    const Quaternion turned = from_yaw_pitch_roll(exact::kPi / 2, 0, 0);
    add_empty_rays(
        table, [&](double) { return turned; }, scan);
    CHECK(scan.returns == returns);
    CHECK(scan.beams == table.size());
    CHECK(scan.azimuth_step_rad / kDegree == Approx(head.step_deg()).epsilon(0.01));
    double latest_off_s = 0;
    for (std::size_t i = 0; i < scan.rays.size(); ++i) {
        const RecordedRay& r = scan.rays[i];
        CHECK(r.is_empty() == (i >= returns));
        CHECK(r.column < scan.columns);
        if (!r.is_empty()) continue;
        found.insert(place(r));
        const auto az = exact::sin_cos(r.azimuth_rad), el = exact::sin_cos(r.elevation_rad);
        CHECK(length(r.direction - Vec3d{-el.cos * az.sin, el.cos * az.cos, el.sin}) < 1e-9);
        const double fired_s = 1000 + static_cast<double>(place(r).second) * head.step_deg() / 3600;
        latest_off_s = std::max(latest_off_s, std::fabs(r.time_s - fired_s));
    }
    for (const RecordedRay& r : away) taken.insert(place(r));
    CHECK(taken.size() > 1000);
    CHECK(found == taken);
    if (order == Order::fired && head.cut == Head::Cut::head) CHECK(latest_off_s < 2e-4);
}

}  // namespace

TEST_CASE("empty rays are found where a full sweep lost its rays") {
    const Head plain{even_elevations(32, 10, 1.33), {}, 900};
    SECTION("in firing order") { check_empty_rays(plain, Order::fired); }
    SECTION("ring by ring") { check_empty_rays(plain, Order::rings); }
    SECTION("in no order") { check_empty_rays(plain, Order::none); }
    Head offset = plain;
    for (int b = 0; b < 32; ++b) offset.ahead_deg.push_back(b % 4 - 1.5);
    SECTION("by beams that look ahead of the head") { check_empty_rays(offset, Order::fired); }
    offset.cut = Head::Cut::azimuth;
    SECTION("by such beams in sweeps that are cut at an azimuth") { check_empty_rays(offset, Order::fired); }
    Head forward = plain;
    forward.first_deg = -60, forward.covered_deg = 120;
    SECTION("of a sensor that looks forward") { check_empty_rays(forward, Order::fired); }
}

TEST_CASE("a beam without any return is empty all around") {
    const Head head{even_elevations(16, 10, 1), {}, 450};
    for (const bool in_order : {true, false}) {
        RecordedScan scan;
        for (const RecordedRay& r : sweep_of(head))
            if (r.beam != 3) scan.rays.push_back(r);
        if (!in_order)
            std::stable_sort(scan.rays.begin(), scan.rays.end(),
                             [](const RecordedRay& a, const RecordedRay& b) { return a.beam < b.beam; });
        scan.returns = scan.rays.size();
        BeamTable table;
        for (const double e : head.elevation_deg) table.elevation_rad.push_back(e * kDegree);
        add_empty_rays(
            table, [](double) { return Quaternion{}; }, scan);
        const auto empty = std::span(scan.rays).subspan(scan.returns);
        CHECK(empty.size() == 450);
        for (const RecordedRay& r : empty) {
            CHECK(r.beam == 3);
            CHECK(r.elevation_rad == Approx(7 * kDegree));
        }
    }
}

TEST_CASE("empty rays that the file knows are taken as they are") {
    const Head head{even_elevations(16, 10, 1), {}, 450};
    RecordedScan scan;
    std::vector<RecordedRay> empty;
    for (RecordedRay r : sweep_of(head)) {
        if (rng::uniform(9, scan.rays.size() + empty.size()) < 0.9) {
            scan.rays.push_back(r);
        } else if (empty.size() < 100) {
            r.range_m = 0;
            empty.push_back(r);
        }
    }
    scan.returns = scan.rays.size();
    scan.rays.insert(scan.rays.end(), empty.begin(), empty.end());
    BeamTable table;
    for (const double e : head.elevation_deg) table.elevation_rad.push_back(e * kDegree);
    add_empty_rays(
        table, [](double) { return Quaternion{}; }, scan);
    REQUIRE(scan.rays.size() == scan.returns + 100);
    for (std::size_t i = 0; i < 100; ++i) {
        const RecordedRay& r = scan.rays[scan.returns + i];
        CHECK(r.azimuth_rad == empty[i].azimuth_rad);
        const double turned_deg = r.azimuth_rad / kDegree - head.first_deg;
        CHECK(std::fabs(wrapped_deg(turned_deg - r.column * head.step_deg())) < 2 * head.step_deg());
    }
}

TEST_CASE("returns in the cells of the recording car are kept as rays and marked") {
    test::TempDir dir;
    std::string bytes;
    const std::vector<Vec3d> points{{8, 0, 0}, {1.5, 0.3, -0.7}, {0, 9, 1}, {1.55, 0.3, -0.7}, {-7, 1, 0}};
    for (const Vec3d& p : points)
        for (const double v : {p.x, p.y, p.z, 0.5}) test::put_float(bytes, v);
    const auto scan_file = dir / "000000.bin";
    test::write_text(scan_file, bytes);

    // The car looks along y, so that the frames of sensor and world differ.
    const Pose pose{{100, 200, 2}, from_yaw_pitch_roll(exact::kPi / 2, 0, 0)};
    auto drive = std::make_shared<io::Drive>();
    Sweep sweep;
    sweep.frame = Sweep::Frame::moving;
    sweep.poses = {{0, pose}, {0.1, pose}};
    sweep.end_s = 0.1;
    drive->scans.push_back({scan_file, sweep, {}});
    drive->trajectory = Trajectory(sweep.poses);
    drive->own_car = {*SensorCell::of(points[1])};
    REQUIRE(SensorCell::of(points[1]) == SensorCell::of(points[3]));

    const RecordedDrive recorded({{scan_file, {}, drive, &drive->scans[0]}}, {}, {});
    std::size_t scans = 0;
    recorded.read(0, CancelToken(), [&](const RecordedScan& scan) {
        ++scans;
        REQUIRE(scan.rays.size() == points.size());
        CHECK(scan.own_car == 2);
        for (std::size_t i = 0; i < points.size(); ++i) {
            CHECK(scan.rays[i].own_car == (i == 1 || i == 3));
            CHECK(length(scan.rays[i].origin + scan.rays[i].range_m * scan.rays[i].direction -
                         pose.apply(points[i])) < 1e-5);
        }
    });
    CHECK(scans == 1);
}

TEST_CASE("rays of a head that turns unevenly all have places of their own in the image") {
    const Sensor sensor = Sensor::parse(
        "name = \"small\"\nkind = \"spinning\"\n[spin]\nrate_hz = 10\ncolumns_per_turn = 100\n[beams]\n"
        "count = 4\nfirst_deg = 3\nlast_deg = 0\n[range]\nmin_m = 0.5\nmax_m = 50\n",
        "small", {});
    BeamTable table;
    for (const double e : {3.0, 2.0, 1.0, 0.0}) table.elevation_rad.push_back(e * kDegree);
    RecordedScan scan;
    for (int column = 0; column < 98; ++column)
        for (std::uint16_t beam = 0; beam < 4; ++beam) {
            RecordedRay ray;
            ray.beam = beam;
            // Half a column off, where rounding decides, and now and then a little more or less.
            ray.azimuth_rad = (3.6 * (column + 0.5) + (column * 7 % 5 - 2) * 0.4) * kDegree;
            scan.rays.push_back(ray);
        }
    RecordedRay astray;
    astray.beam = 17;
    scan.rays.push_back(astray);
    const std::vector<std::uint32_t> places = LessonMaker(sensor, table).places_of(scan);
    REQUIRE(places.size() == scan.rays.size());
    CHECK(places.back() == LessonMaker::kNowhere);
    std::set<std::uint32_t> taken(places.begin(), places.end());
    taken.erase(LessonMaker::kNowhere);
    CHECK(taken.size() > 380);
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
        if (places[i] == LessonMaker::kNowhere) continue;
        CHECK(places[i] % 4 == i % 4);
        const double off = places[i] / 4 - static_cast<double>(i / 4);
        CHECK(std::fabs(off - 0.5) < 2);
    }
    CHECK(std::count(places.begin(), places.end(), LessonMaker::kNowhere) + static_cast<long>(taken.size()) ==
          static_cast<long>(places.size()));
}

TEST_CASE("the shadow of the recording car teaches like rays that did not come back") {
    const Sensor sensor = Sensor::parse(
        "name = \"small\"\nkind = \"spinning\"\n[spin]\nrate_hz = 10\ncolumns_per_turn = 90\n[beams]\n"
        "count = 16\nfirst_deg = 10\nlast_deg = -5\n[range]\nmin_m = 0.5\nmax_m = 50\n",
        "small", {});
    const Head head{even_elevations(16, 10, 1), {}, 90};
    BeamTable table;
    for (const double e : head.elevation_deg) table.elevation_rad.push_back(e * kDegree);
    RecordedScan scan;
    scan.rays = sweep_of(head);
    scan.returns = scan.rays.size();
    std::vector<Return> simulated(scan.rays.size());
    for (Return& r : simulated) r.status = RayStatus::hit, r.range_m = 10;
    const LessonMaker maker(sensor, table);
    const auto answers = [&](learn::Answer wanted) {
        const auto lesson = maker.lesson(scan, simulated);
        return std::count_if(lesson.observed.begin(), lesson.observed.end(),
                             [&](const auto& o) { return o.answer == wanted; });
    };
    const auto returned = answers(learn::Answer::returned);
    REQUIRE(returned > 16 * 80);
    CHECK(answers(learn::Answer::empty) == 0);
    std::set<std::uint32_t> shadow;
    const std::vector<std::uint32_t> places = maker.places_of(scan);
    for (std::size_t i = 0; i < scan.rays.size(); ++i) {
        RecordedRay& ray = scan.rays[i];
        if (ray.elevation_rad < -2.5 * kDegree && std::fabs(ray.azimuth_rad) < 30 * kDegree) {
            ray.own_car = true;
            if (places[i] != LessonMaker::kNowhere) shadow.insert(places[i]);
        }
    }
    CHECK(answers(learn::Answer::empty) == static_cast<std::ptrdiff_t>(shadow.size()));
    CHECK(answers(learn::Answer::returned) == returned - static_cast<std::ptrdiff_t>(shadow.size()));
}
