#include "run_program.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace citysplat;

TEST_CASE("the program starts without any library of NVIDIA", "[gpu]") {
    const test::Outcome libraries = test::run_program({"ldd", test::program()});
    REQUIRE(libraries.exit_code == 0);
    for (const char* name : {"libcuda", "libcudart", "libnvoptix", "libnvidia"})
        CHECK_THAT(libraries.out, !Catch::Contains(name));
    const test::Outcome symbols = test::run_program({"nm", "--dynamic", "--undefined-only", test::program()});
    REQUIRE(symbols.exit_code == 0);
    for (const char* name : {" cuda", " cuInit", " cuMem", " optix"})
        CHECK_THAT(symbols.out, !Catch::Contains(name));
}

TEST_CASE("asking for a GPU where there is none ends with 69 and the reason", "[gpu]") {
    const test::Outcome outcome = test::citysplat({"selftest", "--backend", "gpu"});
    if (outcome.exit_code == 0) return;  // there is one
    CHECK(outcome.exit_code == 69);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Catch::StartsWith("citysplat: --backend gpu: ") &&
                                Catch::EndsWith("; --backend cpu always works\n"));
    CHECK_THAT(outcome.err, Catch::Contains("built without the GPU backend") || Catch::Contains("driver") ||
                                Catch::Contains("there is no NVIDIA GPU") || Catch::Contains("OptiX"));
}

TEST_CASE("an unknown backend is a usage error", "[gpu]") {
    CHECK(test::citysplat({"selftest", "--backend", "tpu"}).exit_code == 2);
}

TEST_CASE("the self-test compares ray by ray and reports", "[gpu]") {
    const test::Outcome outcome =
        test::citysplat({"selftest", "--backend", "cpu", "--length", "20", "--scans", "1", "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(outcome.err, Catch::Contains("backend: cpu, groups of 512 rays"));
    const auto report = nlohmann::json::parse(outcome.out);
    CHECK(report["backend"] == "cpu");
    CHECK(report["passed"] == true);
    CHECK(report["closest"]["rays"] == 144'000);
    CHECK(report["closest"]["hits"] > 30'000);
    CHECK(report["closest"]["same_splat"] == 144'000);
    CHECK(report["nearest"]["differing"] == 0);
    CHECK(report["returns"]["same_bytes"] == 144'000);
    CHECK(report["splats"] > 1000);
}
