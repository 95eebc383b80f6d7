#include "trace/backend.hpp"

#include "core/error.hpp"

namespace citysplat::trace {

namespace {

Backend cpu_backend(const std::string& why, float max_range_m) {
    GroupOptions options;
    options.max_range_m = max_range_m;
    Backend backend{"cpu", "", make_group_tracer(options)};
    backend.note = "backend: cpu, " + backend.tracer->name() + why;
    return backend;
}

Backend gpu_backend(const GpuOffer& gpu) {
    if (!gpu.refusal.empty()) throw UnavailableError(gpu.refusal);
    Backend backend{"gpu", "", gpu.start()};
    backend.note = "backend: gpu, " + backend.tracer->name();
    return backend;
}

}  // namespace

BackendChoice parse_backend(std::string_view text) {
    if (text == "auto") return BackendChoice::automatic;
    if (text == "cpu") return BackendChoice::cpu;
    if (text == "gpu") return BackendChoice::gpu;
    throw UsageError("--backend " + std::string(text) + " is not one of auto, cpu, gpu");
}

Backend make_backend(BackendChoice choice, const GpuOffer& gpu, float max_range_m) {
    if (choice == BackendChoice::cpu) return cpu_backend("", max_range_m);
    try {
        return gpu_backend(gpu);
    } catch (const UnavailableError& e) {
        if (choice == BackendChoice::gpu)
            throw UnavailableError(std::string("--backend gpu: ") + e.what() +
                                   "; --backend cpu always works");
        return cpu_backend(std::string(" (no gpu: ") + e.what() + ")", max_range_m);
    }
}

}  // namespace citysplat::trace
