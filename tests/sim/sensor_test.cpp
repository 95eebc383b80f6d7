#include "sim/sensor/sensor.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;

namespace {

double degrees(double rad) { return rad * 180 / exact::kPi; }
double elevation_deg(const Firing& f) {
    return degrees(std::asin(std::clamp(static_cast<double>(f.direction.z), -1.0, 1.0)));
}
double azimuth_deg(const Firing& f) {
    return degrees(std::atan2(static_cast<double>(f.direction.y), static_cast<double>(f.direction.x)));
}

std::vector<Firing> firings_of(const Sensor& sensor, std::uint64_t scan = 0) {
    std::vector<Firing> firings;
    fire(sensor, scan, firings);
    std::sort(firings.begin(), firings.end(), [](const Firing& a, const Firing& b) { return a.ray < b.ray; });
    return firings;
}

struct Expected {
    const char* name;
    std::uint32_t rays, beams;
    double low_deg, high_deg, smallest_step_deg, azimuth_step_deg, max_range_m;
};

// Published figures, independent of the files under test.
const Expected kSpinning[] = {
    {"hdl-64e", 64 * 2250, 64, -24.8, 2.0, 26.8 / 63, 0.16, 120},
    {"hdl-64e-s2", 64 * 2083, 64, -24.33, 2.0, 1.0 / 3, 360.0 / 2083, 120},
    {"hdl-32e", 32 * 1800, 32, -30.67, 10.67, 1.33, 0.2, 100},
    {"vlp-16", 16 * 1808, 16, -15, 15, 2.0, 360.0 / 1808, 100},
    {"vlp-32c", 32 * 1808, 32, -25, 15, 0.333, 360.0 / 1808, 200},
    {"os1-32", 32 * 1024, 32, -22.5, 22.5, 45.0 / 31, 360.0 / 1024, 120},
    {"os1-64", 64 * 1024, 64, -22.5, 22.5, 45.0 / 63, 360.0 / 1024, 120},
    {"os1-128", 128 * 1024, 128, -22.5, 22.5, 45.0 / 127, 360.0 / 1024, 120},
    {"pandar40p", 40 * 1800, 40, -25, 15, 1.0 / 3, 0.2, 200},
    {"pandar64", 64 * 1800, 64, -25, 15, 1.0 / 6, 0.2, 200},
};

}  // namespace

TEST_CASE("spinning sensors have the rays, field of view and steps of their data sheets") {
    for (const Expected& e : kSpinning) {
        CAPTURE(e.name);
        const Sensor sensor = Sensor::load(e.name);
        const auto firings = firings_of(sensor);
        REQUIRE(sensor.rays_per_scan() == e.rays);
        REQUIRE(firings.size() == e.rays);
        CHECK(sensor.max_range_m == e.max_range_m);

        std::map<std::uint32_t, double> elevations;
        for (const Firing& f : firings) elevations.emplace(f.beam, elevation_deg(f));
        REQUIRE(elevations.size() == e.beams);
        std::vector<double> sorted;
        for (const auto& [beam, elevation] : elevations) sorted.push_back(elevation);
        std::sort(sorted.begin(), sorted.end());
        CHECK(sorted.front() == Approx(e.low_deg).margin(0.01));
        CHECK(sorted.back() == Approx(e.high_deg).margin(0.01));
        double step = 1e9;
        for (std::size_t i = 1; i < sorted.size(); ++i) step = std::min(step, sorted[i] - sorted[i - 1]);
        CHECK(step == Approx(e.smallest_step_deg).margin(0.01));

        // Successive firings of one beam are one azimuth step apart and go once around.
        double turned = 0, previous = 0;
        bool first = true;
        for (const Firing& f : firings) {
            if (f.beam != 0) continue;
            const double azimuth = azimuth_deg(f);
            if (!first) {
                const double change = std::remainder(azimuth - previous, 360.0);
                REQUIRE(std::fabs(change) == Approx(e.azimuth_step_deg).margin(1e-4));
                turned += change;
            }
            first = false;
            previous = azimuth;
        }
        CHECK(std::fabs(turned) == Approx(360 - e.azimuth_step_deg).margin(1e-3));
        CHECK(firings.back().time_s <= static_cast<float>(1 / sensor.scan_hz));
    }
}

TEST_CASE("every ray of a scan is fired exactly once, directions are unit vectors, neighbours are close") {
    for (const std::string& name : Sensor::builtin_names()) {
        CAPTURE(name);
        const Sensor sensor = Sensor::load(name);
        std::vector<Firing> firings;
        fire(sensor, 3, firings);
        REQUIRE(firings.size() == sensor.rays_per_scan());
        std::vector<bool> seen(firings.size());
        for (const Firing& f : firings) {
            REQUIRE(f.ray < seen.size());
            REQUIRE_FALSE(seen[f.ray]);
            seen[f.ray] = true;
            REQUIRE(static_cast<double>(dot(f.direction, f.direction)) == Approx(1).margin(1e-6));
            REQUIRE(f.time_s >= 0);
            REQUIRE(f.time_s <= static_cast<float>(1 / sensor.scan_hz));
        }
        CHECK_FALSE(sensor.source.empty());
    }
}

TEST_CASE("the catalogue has every sensor we promise") {
    const auto names = Sensor::builtin_names();
    for (const char* name : {"hdl-64e", "hdl-32e", "vlp-16", "vlp-32c", "os1-32", "os1-64", "os1-128",
                             "pandar40p", "pandar64", "avia", "mid-360", "urg-04lx", "d455"})
        CHECK(std::find(names.begin(), names.end(), name) != names.end());
}

TEST_CASE("Livox patterns fill their field of view with time and do not repeat") {
    struct {
        const char* name;
        std::uint32_t rays;
        double low, high, left;
    } const expected[] = {{"avia", 24000, -38.6, 38.6, 35.2}, {"mid-360", 20000, -7, 52, 180}};
    for (const auto& e : expected) {
        CAPTURE(e.name);
        const Sensor sensor = Sensor::load(e.name);
        REQUIRE(sensor.rays_per_scan() == e.rays);
        CHECK_FALSE(sensor.repeats());
        double low = 90, high = -90, widest = 0;
        std::set<std::pair<int, int>> cells_of_one, cells_of_ten;
        for (std::uint64_t scan = 0; scan < 10; ++scan)
            for (const Firing& f : firings_of(sensor, scan)) {
                const double elevation = elevation_deg(f), azimuth = azimuth_deg(f);
                low = std::min(low, elevation), high = std::max(high, elevation),
                widest = std::max(widest, std::fabs(azimuth));
                const std::pair cell{static_cast<int>(std::floor(azimuth * 2)),
                                     static_cast<int>(std::floor(elevation * 2))};
                cells_of_ten.insert(cell);
                if (scan == 0) cells_of_one.insert(cell);
            }
        CHECK(low == Approx(e.low).margin(0.3));
        CHECK(high == Approx(e.high).margin(0.3));
        CHECK(widest == Approx(e.left).margin(0.3));
        CHECK(cells_of_ten.size() > cells_of_one.size() * 6 / 5);
    }
}

TEST_CASE("the Hokuyo sweeps a sector of 240 degrees, the depth camera its pixels") {
    const auto urg = firings_of(Sensor::load("urg-04lx"));
    REQUIRE(urg.size() == 683);
    CHECK(azimuth_deg(urg.front()) == Approx(-119.88).margin(0.01));
    CHECK(azimuth_deg(urg.back()) == Approx(119.88).margin(0.01));
    CHECK(azimuth_deg(urg[342]) - azimuth_deg(urg[341]) == Approx(0.3515625).margin(1e-4));

    const auto d455 = firings_of(Sensor::load("d455"));
    REQUIRE(d455.size() == 1280 * 720);
    const auto at = [&](int column, int row) {
        return d455[static_cast<std::size_t>(row * 1280 + column)].direction;
    };
    const auto degrees_of = [](float a, float b) {
        return degrees(std::atan2(static_cast<double>(a), static_cast<double>(b)));
    };
    // Pixel centres are half a pixel inside the field of view.
    CHECK(degrees_of(at(0, 360).y, at(0, 360).x) == Approx(43.5).margin(0.05));
    CHECK(degrees_of(at(1279, 360).y, at(1279, 360).x) == Approx(-43.5).margin(0.05));
    CHECK(degrees_of(at(640, 0).z, at(640, 0).x) == Approx(29).margin(0.05));
    for (const Firing& f : d455) REQUIRE(f.time_s == 0);
}

TEST_CASE("the beams of a column see the head turn between their firings") {
    const Sensor sensor = Sensor::load("hdl-32e");
    const auto firings = firings_of(sensor);
    // Clockwise: azimuth falls. 35.712 µs at 10 turns a second are 0.1286°.
    CHECK(azimuth_deg(firings[31]) - azimuth_deg(firings[0]) == Approx(-0.12856).margin(1e-4));
    CHECK(static_cast<double>(firings[31].time_s) == Approx(35.712e-6).margin(1e-9));
}

TEST_CASE("a ray table gives its own rays, scan by scan, and begins anew with a scan") {
    const test::TempDir directory;
    std::string csv = "# a spiral\ntime_s, elevation_deg, azimuth_deg, beam\n";
    for (int i = 0; i < 250; ++i)
        csv += std::to_string(i * 0.001) + "," + std::to_string(i * 0.1) + "," + std::to_string(i) + "," +
               std::to_string(i % 3) + "\n";
    write_file_atomically(directory / "rays.csv", std::as_bytes(std::span(csv)));
    const std::string toml = "name='spiral'\nkind='table'\ntable='rays.csv'\nscan_hz=10\n[range]\nmax_m=50\n";
    write_file_atomically(directory / "spiral.toml", std::as_bytes(std::span(toml)));
    const Sensor sensor = Sensor::load((directory / "spiral.toml").string());
    std::vector<Firing> firings;
    fire(sensor, 0, firings);
    REQUIRE(firings.size() == 100);
    CHECK(elevation_deg(firings[50]) == Approx(5).margin(1e-4));
    fire(sensor, 2, firings);  // 0.2 … 0.25 s: the last fifty rays, then nothing until the scan ends
    REQUIRE(firings.size() == 50);
    CHECK(elevation_deg(firings[0]) == Approx(20).margin(1e-4));
    CHECK(firings[10].beam == 210 % 3);
    CHECK(firings[10].ray == 10);
    CHECK(firings[10].time_s == Approx(0.01).margin(1e-6));
    fire(sensor, 3, firings);  // the table begins anew with a scan, not where its last ray was
    REQUIRE(firings.size() == 100);
    CHECK(elevation_deg(firings[50]) == Approx(5).margin(1e-4));
    CHECK(sensor.rays_per_scan() == 100);
    CHECK_FALSE(sensor.repeats());
}

namespace {

Sensor sensor_of_table(const test::TempDir& directory, const std::string& csv) {
    write_file_atomically(directory / "rays.csv", std::as_bytes(std::span(csv)));
    return Sensor::parse("name='t'\nkind='table'\ntable='rays.csv'\nscan_hz=10\n[range]\nmax_m=50\n",
                         "t.toml", directory.path());
}

}  // namespace

TEST_CASE("a table with idle time at its end fires the same rays in each scan") {
    const test::TempDir directory;
    std::string csv = "time_s,azimuth_deg,elevation_deg\n";
    for (int i = 0; i < 137; ++i) csv += std::to_string(i * 0.0005) + "," + std::to_string(i) + ",0\n";
    const Sensor sensor = sensor_of_table(directory, csv);
    CHECK(sensor.repeats());
    std::vector<Firing> first, other;
    fire(sensor, 0, first);
    REQUIRE(first.size() == 137);
    for (const std::uint64_t scan : {1, 2, 7, 1000}) {
        fire(sensor, scan, other);
        REQUIRE(other.size() == first.size());
        for (std::size_t i = 0; i < other.size(); ++i) {
            REQUIRE(other[i].time_s == first[i].time_s);
            REQUIRE(other[i].direction.x == first[i].direction.x);
        }
    }
}

TEST_CASE("a ray at the beginning of a scan belongs to that scan, whatever rounding says") {
    const test::TempDir directory;
    std::string csv = "time_s,azimuth_deg,elevation_deg\n";
    for (int scan = 0; scan < 1000; ++scan) {
        char line[64];
        std::snprintf(line, sizeof line, "%.1f,%d,0\n%.3f,%d,0\n", scan * 0.1, scan % 360, scan * 0.1 + 0.099,
                      1);
        csv += line;
    }
    const Sensor sensor = sensor_of_table(directory, csv);
    std::vector<Firing> firings;
    for (std::uint64_t scan = 0; scan < 2000; ++scan) {
        fire(sensor, scan, firings);
        REQUIRE(firings.size() == 2);
        REQUIRE(firings[0].time_s == Approx(0).margin(1e-7));
        REQUIRE(firings[1].time_s == Approx(0.099).margin(1e-6));
    }
}

TEST_CASE("a ray table with impossible numbers is refused with the line") {
    const test::TempDir directory;
    const std::string head = "time_s,azimuth_deg,elevation_deg,beam\n0,0,0,0\n";
    CHECK(sensor_of_table(directory, head).rays_per_scan() == 1);
    for (const char* row :
         {"nan,0,0,0", "inf,0,0,0", "1e300,0,0,0", "-1,0,0,0", "1,nan,0,0", "1,1e300,0,0", "1,0,91,0",
          "1,0,-inf,0", "1,0,0,65536", "1,0,0,-1", "1,0,0,1.5", "1,0,0", "1,0,,0", "1,0,zero,0"}) {
        INFO(row);
        CHECK_THROWS_WITH(sensor_of_table(directory, head + row + "\n"), Catch::Contains("line 3"));
    }
    CHECK_THROWS_AS(sensor_of_table(directory, "time_s,azimuth_deg,elevation_deg\n"), InputError);
}

TEST_CASE("no number of a sensor file may be NaN, infinite or absurd") {
    const std::string models =
        "[range]\nmin_m = 1\nmax_m = 50\n[beam]\ndivergence_mrad = 3\n[error]\nbias_m = [0.1, 0, 0]\n"
        "sigma_m = 0.02\n[intensity]\nincidence_power = 1\nrange_power = 2\n[drop]\nprobability = 0.1\n"
        "max_incidence_deg = 80\n";
    const std::vector<std::string> kinds{
        "kind = 'spinning'\n[spin]\nrate_hz = 10\ncolumns_per_turn = 100\nfrom_deg = 10\nto_deg = 90\n"
        "[beams]\nelevation_deg = [1, 2]\nazimuth_deg = [1, 2]\ntime_us = [1, 2]\n",
        "kind = 'spinning'\n[spin]\nrate_hz = 10\ncolumns_per_turn = 100\n[beams]\ncount = 2\nfirst_deg = 1\n"
        "last_deg = -1\n",
        "kind = 'rosette'\nscan_hz = 10\n[rosette]\npulses_per_second = 1000\nlines = 2\nline_spacing_deg = "
        "1\n"
        "first_hz = 1\nsecond_hz = 2\nhorizontal_deg = 70\nvertical_deg = 70\n",
        "kind = 'nodding'\nscan_hz = 10\n[nodding]\npulses_per_second = 1000\nlines = 2\nline_spacing_deg = "
        "1\n"
        "turn_hz = 1\nnod_hz = 2\nlow_deg = -10\nhigh_deg = 10\n",
        "kind = 'pinhole'\nscan_hz = 10\n[pinhole]\ncolumns = 8\nrows = 6\nhorizontal_deg = 70\n"
        "vertical_deg = 70\n"};
    int keys = 0;
    for (const std::string& kind : kinds) {
        const std::string text = "name = 'x'\n" + kind + models;
        REQUIRE_NOTHROW(Sensor::parse(text, "good.toml"));
        for (std::size_t at = text.find(" = "); at != std::string::npos; at = text.find(" = ", at + 1)) {
            if (text[at + 3] == '\'') continue;
            ++keys;
            const std::size_t line = text.rfind('\n', at) + 1, end = text.find('\n', at);
            const std::string key = text.substr(line, at - line);
            const bool array = text[at + 3] == '[';
            for (const std::string bad : {"nan", "inf", "-inf", "1e300", "-1e300", "'text'", "true"}) {
                const std::string value = array ? "[" + bad + ", 2]" : bad;
                INFO(key << " = " << value);
                CHECK_THROWS_WITH(
                    Sensor::parse(text.substr(0, at + 3) + value + text.substr(end), "bad.toml"),
                    Catch::Contains(key));
            }
        }
    }
    CHECK(keys > 70);
    CHECK_THROWS_WITH(
        Sensor::parse("name = 'x'\nkind = 'pinhole'\nscan_hz = 1e7\n[range]\nmax_m = 5\n", "x.toml"),
        Catch::Contains("scan_hz") && Catch::Contains("10000 Hz"));
}

TEST_CASE("mistakes in a sensor file are named with file and key") {
    const auto parse = [](const std::string& text) { return Sensor::parse(text, "bad.toml"); };
    const std::string good =
        "name='x'\nkind='spinning'\n[spin]\nrate_hz=10\ncolumns_per_turn=100\n[beams]\ncount=2\nfirst_deg="
        "1\nlast_deg=-1\n[range]\nmax_m=50\n";
    CHECK(parse(good).rays_per_scan() == 200);
    CHECK_THROWS_WITH(parse(good + "[eror]\nsigma_m=1\n"),
                      Catch::Contains("bad.toml") && Catch::Contains("eror"));
    CHECK_THROWS_WITH(parse(good + "[error]\nsigma=1\n"), Catch::Contains("sigma"));
    CHECK_THROWS_WITH(parse("name='x'\nkind='spining'\nscan_hz=10\n[range]\nmax_m=5\n"),
                      Catch::Contains("spining"));
    CHECK_THROWS_WITH(parse("name='x'\n"), Catch::Contains("kind"));
    CHECK_THROWS_WITH(parse("name = \n"), Catch::Contains("line 1"));
    CHECK_THROWS_WITH(parse(good + "[drop]\nprobability=2\n"), Catch::Contains("probability"));
    CHECK_THROWS_WITH(parse(good + "[drop]\nmax_incidence_deg=-3\n"), Catch::Contains("from 0 to 90"));
    CHECK_THROWS_WITH(parse(good + "[beam]\ndivergence_mrad=-3\n"), Catch::Contains("divergence_mrad"));
    CHECK_THROWS_WITH(parse(good + "[intensity]\nrange_power=1e300\n"), Catch::Contains("range_power"));
    CHECK_THROWS_WITH(parse(good + "[intensity]\nrange_power=1.5\n"),
                      Catch::Contains("\"range_power\" is 1.5; expected a whole number from 0 to 8"));
    const auto spinning = [&](const std::string& spin, const std::string& beams) {
        return parse("name='x'\nkind='spinning'\n[spin]\n" + spin + "\n[beams]\n" + beams +
                     "\n[range]\nmax_m=50\n");
    };
    CHECK_THROWS_WITH(spinning("rate_hz=10\ncolumns_per_turn=9\nsense='left'", "elevation_deg=[0]"),
                      Catch::Contains("\"sense\" must be"));
    CHECK_THROWS_WITH(spinning("rate_hz=1e-300\ncolumns_per_turn=9", "elevation_deg=[0]"),
                      Catch::Contains("\"rate_hz\" is 1e-300; expected a number from 0.001 to 10000 Hz"));
    CHECK_THROWS_WITH(spinning("rate_hz=10\ncolumns_per_turn=9", "elevation_deg=[0, 91]"),
                      Catch::Contains("-90 to 90"));
    CHECK_THROWS_WITH(spinning("rate_hz=10\ncolumns_per_turn=9", "count=10000000\nfirst_deg=0"),
                      Catch::Contains("\"count\" is 10000000; expected a whole number from 1 to 65535"));
    CHECK_THROWS_WITH(
        spinning("rate_hz=10\ncolumns_per_turn=10000000", "count=1000\nfirst_deg=0\nlast_deg=9"),
        Catch::Contains("from 1 to 100000000 rays"));
    const auto pulsed = [&](const std::string& pulses) {
        return parse("name='x'\nkind='rosette'\nscan_hz=10\n[rosette]\npulses_per_second=" + pulses +
                     "\nfirst_hz=1\nsecond_hz=2\nhorizontal_deg=70\nvertical_deg=70\n[range]\nmax_m=50\n");
    };
    CHECK(pulsed("1000").rays_per_scan() == 100);
    CHECK_THROWS_WITH(pulsed("255555505557.2"), Catch::Contains("pulses_per_second"));
    CHECK_THROWS_WITH(pulsed("1e13"),
                      Catch::Contains("is 1e+13; expected a number from 0.001 to 1000000000 Hz"));
    CHECK_THROWS_WITH(pulsed("1"), Catch::Contains("from 1 to 100000000 rays"));
    // Rows and lines are the beams of returns, which have 16 bits for them.
    CHECK_THROWS_WITH(pulsed("1000000\nlines=70000"), Catch::Contains("\"lines\" is 70000"));
    CHECK_THROWS_WITH(parse("name='x'\nkind='pinhole'\nscan_hz=10\n[pinhole]\ncolumns=1\nrows=65536\n"
                            "horizontal_deg=70\nvertical_deg=70\n[range]\nmax_m=50\n"),
                      Catch::Contains("\"rows\" is 65536"));
    CHECK_THROWS_AS(Sensor::load("no-such-sensor"), ConfigError);
}
