#include "bench/bench_report.hpp"

#include "core/error.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>

using namespace citysplat;
using bench::Ratio;
using bench::Report;

TEST_CASE("a figure that is not a number is refused") {
    Report report{{}};
    CHECK_THROWS_AS(report.row({"speed", NAN, "m/s"}), InputError);
    CHECK_THROWS_AS(report.detail({"speed", INFINITY, "m/s"}), InputError);
    CHECK_THROWS_AS(report.detail({"speed", 1, "m/s", Ratio{NAN, "light"}}), InputError);
    CHECK_THROWS_AS(bench::ratio(0, 0), InputError);
    CHECK_THROWS_AS(bench::ratio(1, 0), InputError);
    CHECK(bench::ratio(1, 4) == 0.25);
}

TEST_CASE("less than one ray in a hundred must not become a figure") {
    CHECK_THROWS_AS(bench::require_hits(0, 0, "drive"), InputError);
    CHECK_THROWS_AS(bench::require_hits(0, 1000, "drive"), InputError);
    CHECK_THROWS_AS(bench::require_hits(9, 1000, "drive"), InputError);
    CHECK_NOTHROW(bench::require_hits(10, 1000, "drive"));
}

TEST_CASE("figures have three digits") {
    CHECK(bench::three_digits(0) == "0");
    CHECK(bench::three_digits(0.04567) == "0.0457");
    CHECK(bench::three_digits(0.8512) == "0.851");
    CHECK(bench::three_digits(1) == "1.00");
    CHECK(bench::three_digits(61.23) == "61.2");
    CHECK(bench::three_digits(12345.6) == "12346");
    CHECK(bench::three_digits(-2.5) == "-2.50");
}

TEST_CASE("rows are lines of a Markdown table, details are not") {
    const test::TempDir dir;
    const auto path = dir / "table.md";
    Report report(path);
    report.row({"rays", 61.23, "scans/s", Ratio{0.85, "the bare loop"}});
    report.detail({"more rays", 7, "scans/s"});
    report.row({"ghosts", 0.04, "%", {}, false});
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(text == "| rays | 61.2 scans/s | 0.850 × the bare loop | yes |\n| ghosts | 0.0400 % |  | no |\n");
}
