#include "trace/backend.hpp"

#include "core/error.hpp"
#include "cuda/gpu_facts.hpp"
#include "cuda/on_cpu/cpu_device.hpp"
#include "cuda/optix_tracer.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using gpu::GpuFacts;

namespace {

GpuFacts all_well() {
    GpuFacts facts;
    facts.driver_cuda = 13010;
    facts.needed_cuda = 13000;
    facts.devices = 1;
    facts.device = "RTX 2070";
    facts.capability = 75;
    return facts;
}

template <class Change>
std::string refusal_after(Change change) {
    GpuFacts facts = all_well();
    change(facts);
    return gpu::refusal(facts);
}

trace::GpuOffer offer_on_cpu() {
    return {"", "test", [] {
                return gpu::make_optix_tracer(
                    std::make_unique<on_cpu::CpuDevice>(std::make_shared<on_cpu::Script>()), {0, 1000, 4096});
            }};
}

}  // namespace

TEST_CASE("a GPU with a recent driver is not refused", "[gpu]") { CHECK(gpu::refusal(all_well()).empty()); }

TEST_CASE("a refusal names the first thing that is wrong and the way out", "[gpu]") {
    CHECK(refusal_after([](GpuFacts& f) {
              f.driver_missing = "libcuda.so.1: no such file";
              f.devices = 0;
          }) == "the NVIDIA driver is missing (libcuda.so.1: no such file); install it");
    CHECK(refusal_after([](GpuFacts& f) { f.driver_cuda = 12040; }) ==
          "the NVIDIA driver is too old: it knows CUDA 12.4, this program needs 13.0; update the driver");
    CHECK(refusal_after([](GpuFacts& f) { f.driver_failure = "CUDA_ERROR_SYSTEM_NOT_READY"; }) ==
          "the NVIDIA driver does not work (CUDA_ERROR_SYSTEM_NOT_READY)");
    CHECK_THAT(refusal_after([](GpuFacts& f) { f.devices = 0; }),
               Catch::StartsWith("there is no NVIDIA GPU"));
    CHECK(refusal_after([](GpuFacts& f) { f.capability = 61; }) ==
          "RTX 2070 is too old: compute capability 6.1, at least 7.5 (Turing) is needed");
    CHECK_THAT(refusal_after([](GpuFacts& f) {
                   f.optix = GpuFacts::Optix::library_missing;
                   f.optix_failure = "error 7804";
               }),
               Catch::Contains("libnvoptix.so.1") && Catch::Contains("7804"));
    CHECK_THAT(refusal_after([](GpuFacts& f) {
                   f.optix = GpuFacts::Optix::too_old;
                   f.optix_version = "9.1.0";
                   f.needed_optix_abi = 118;
               }),
               Catch::Contains("OptiX 9.1.0 (ABI 118)") && Catch::Contains("update the driver"));
    CHECK(refusal_after([](GpuFacts& f) {
              f.optix = GpuFacts::Optix::failed;
              f.optix_failure = "error 7200";
          }) == "OptiX does not work on RTX 2070 (error 7200)");
}

TEST_CASE("the backend is what was asked for, or the reason why not", "[gpu]") {
    const trace::GpuOffer none{"there is no GPU", "", nullptr};
    const trace::GpuOffer broken{"", "test", []() -> std::unique_ptr<trace::Tracer> {
                                     throw UnavailableError("the pipeline did not link");
                                 }};
    using enum trace::BackendChoice;

    CHECK(trace::make_backend(cpu, offer_on_cpu()).name == "cpu");
    CHECK(trace::make_backend(gpu, offer_on_cpu()).name == "gpu");
    const trace::Backend best = trace::make_backend(automatic, offer_on_cpu());
    CHECK(best.name == "gpu");
    CHECK(best.note == "backend: gpu, the programs on the CPU");

    const trace::Backend fallback = trace::make_backend(automatic, none);
    CHECK(fallback.name == "cpu");
    CHECK_THAT(fallback.note, Catch::StartsWith("backend: cpu, groups of 512 rays") &&
                                  Catch::EndsWith("(no gpu: there is no GPU)") && !Catch::Contains("\n"));
    CHECK_THAT(trace::make_backend(automatic, broken).note,
               Catch::EndsWith("(no gpu: the pipeline did not link)"));
    CHECK_THROWS_AS(trace::make_backend(gpu, none), UnavailableError);
    CHECK_THROWS_WITH(trace::make_backend(gpu, broken), Catch::Contains("the pipeline did not link"));
}

TEST_CASE("the names of the backends", "[gpu]") {
    CHECK(trace::parse_backend("auto") == trace::BackendChoice::automatic);
    CHECK(trace::parse_backend("cpu") == trace::BackendChoice::cpu);
    CHECK(trace::parse_backend("gpu") == trace::BackendChoice::gpu);
    CHECK_THROWS_AS(trace::parse_backend("cuda"), UsageError);
}
