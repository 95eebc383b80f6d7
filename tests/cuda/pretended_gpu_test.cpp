// Runs the program with libcuda.so.1 and libnvoptix.so.1 of fake_cuda.cpp and fake_optix.cpp: everything but
// the GPU.
#include "run_program.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>

using namespace citysplat;

namespace {

namespace fs = std::filesystem;

test::Outcome on_pretended_gpu(const std::vector<std::string>& environment,
                               const std::vector<std::string>& arguments,
                               const std::string& libraries = CITYSPLAT_FAKES) {
    std::vector<std::string> command{"env", "LD_LIBRARY_PATH=" + libraries};
    command.insert(command.end(), environment.begin(), environment.end());
    command.push_back(test::program());
    command.insert(command.end(), arguments.begin(), arguments.end());
    return test::run_program(command);
}

test::Outcome selftest(const std::vector<std::string>& environment,
                       const std::string& libraries = CITYSPLAT_FAKES) {
    return on_pretended_gpu(
        environment, {"selftest", "--backend", "gpu", "--length", "20", "--scans", "1", "--json", "-q"},
        libraries);
}

/// A street of 20 m, built once for several simulations of one scan or two.
class SmallCity {
  public:
    SmallCity() {
        const std::string drive = (scratch_ / "drive").string(), city = (scratch_ / "city").string();
        REQUIRE(test::citysplat({"synth", drive, "--length", "20", "--points-per-metre", "3000", "-q"})
                    .exit_code == 0);
        REQUIRE(test::citysplat({"build", city, drive, "--classes", "synthetic", "-q"}).exit_code == 0);
    }
    test::Outcome simulate(const std::vector<std::string>& environment, const std::string& backend,
                           const std::vector<std::string>& options) const {
        std::vector<std::string> arguments{"simulate",
                                           (scratch_ / "city").string(),
                                           "--trajectory",
                                           (scratch_ / "drive/trajectory.tum").string(),
                                           "--out",
                                           (scratch_ / "out").string(),
                                           "--backend",
                                           backend,
                                           "--rate",
                                           "1",
                                           "--no-scans",
                                           "--json",
                                           "-q"};
        arguments.insert(arguments.end(), options.begin(), options.end());
        return on_pretended_gpu(environment, arguments);
    }

  private:
    test::TempDir scratch_;
};

void check_refusal(const test::Outcome& outcome, const std::string& reason) {
    CHECK(outcome.exit_code == 69);
    CHECK_THAT(outcome.err, Catch::Contains(reason));
}

}  // namespace

TEST_CASE("the whole backend runs on a pretended GPU and agrees with the reference", "[gpu]") {
    for (const char* pools : {"CITYSPLAT_FAKE_POOLS=1", "CITYSPLAT_FAKE_POOLS=0"}) {
        const test::Outcome outcome = selftest({pools});
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        const auto report = nlohmann::json::parse(outcome.out);
        CHECK(report["backend"] == "gpu");
        CHECK(report["tracer"] == "OptiX on Pretended GPU");
        CHECK(report["closest"]["rays"] == 144'000);
        CHECK(report["closest"]["same_splat"] == 144'000);
        CHECK(report["nearest"]["same_splat"] == 144'000);
        CHECK(report["returns"]["same_bytes"] == 144'000);
    }
}

TEST_CASE("a drive simulated on a pretended GPU has the digest of one on the CPU", "[gpu]") {
    const SmallCity city;
    const auto digest = [&](const std::string& backend, const std::vector<std::string>& options) {
        const test::Outcome outcome = city.simulate({}, backend, options);
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        const auto report = nlohmann::json::parse(outcome.out);
        CHECK(report["backend"] == backend);
        CHECK(report["hits"] > 1000);
        return report["digest"].get<std::string>();
    };
    for (const std::vector<std::string>& options : {std::vector<std::string>{"--sensor", "vlp-16"},
                                                    {"--sensor", "vlp-16", "--noise", "off", "--hits", "5"},
                                                    {"--sensor", "mid-360", "--hits", "3"},
                                                    {"--sensor", "avia"}})
        CHECK(digest("gpu", options) == digest("cpu", options));
}

TEST_CASE("what is wrong with driver or device is told", "[gpu]") {
    check_refusal(selftest({"CITYSPLAT_FAKE_CUDA=11080"}), "driver is too old: it knows CUDA 11.8");
    check_refusal(selftest({"CITYSPLAT_FAKE_DEVICES=0"}), "there is no NVIDIA GPU");
    check_refusal(selftest({"CITYSPLAT_FAKE_CAPABILITY=61"}),
                  "Pretended GPU is too old: compute capability 6.1");
    check_refusal(selftest({"CITYSPLAT_FAKE_OPTIX_ABI=1"}), "the driver's OptiX is too old");

    const test::TempDir only_cuda;
    fs::copy_file(fs::path(CITYSPLAT_FAKES) / "libcuda.so.1", only_cuda / "libcuda.so.1");
    check_refusal(selftest({}, only_cuda.path().string()), "OptiX is missing");
}

TEST_CASE("a device that does not start is refused with what it said", "[gpu]") {
    check_refusal(selftest({"CITYSPLAT_FAKE_FAIL=cuDevicePrimaryCtxRetain"}), "while making a context");
    check_refusal(selftest({"CITYSPLAT_FAKE_FAIL=cuEventCreate"}), "while making an event");
    check_refusal(selftest({"CITYSPLAT_FAKE_FAIL=cuModuleLoadDataEx"}), "unknown instruction");
    check_refusal(selftest({"CITYSPLAT_FAKE_FAIL=optixDeviceContextCreate"}), "while making a context");
    check_refusal(selftest({"CITYSPLAT_FAKE_FAIL=optixModuleCreate"}), "line 1: what is this?");
    check_refusal(selftest({"CITYSPLAT_FAKE_FAIL=optixPipelineCreate"}), "while linking the programs");
}

TEST_CASE("a device that fails at work ends the program with its reason", "[gpu]") {
    const SmallCity city;
    const auto check_failure = [&](const std::string& call, const std::string& reason) {
        check_refusal(city.simulate({"CITYSPLAT_FAKE_FAIL=" + call}, "gpu", {"--sensor", "vlp-16"}), reason);
    };
    check_failure("decode_splats", "while decoding splats");
    check_failure("optixAccelBuild", "while building an acceleration structure");
    check_failure("generate_rays", "while generating rays");
    check_failure("optixLaunch", "OptiX failed while tracing");
    check_failure("make_returns", "while making returns");
    check_failure("cuEventSynchronize", "while working on what it was given");
    const test::Outcome small =
        city.simulate({"CITYSPLAT_FAKE_MEMORY=99000000"}, "gpu", {"--sensor", "vlp-16"});
    CHECK(small.exit_code == 74);
    CHECK_THAT(small.err, Catch::Contains("--resident"));
}
