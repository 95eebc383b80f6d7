#pragma once

#include "trace/tracer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace citysplat::trace {

enum class BackendChoice { automatic, cpu, gpu };

/// "auto", "cpu" or "gpu". Throws UsageError.
BackendChoice parse_backend(std::string_view text);

/// What the program can say about a GPU. find_gpu() of cuda/find_gpu.hpp makes it; which one is compiled
/// decides CMake.
struct GpuOffer {
    std::string refusal;  ///< why there is none, for people; empty when there is one
    std::string device;   ///< its name, when there is one
    /// Starts it. May still throw UnavailableError.
    std::function<std::unique_ptr<Tracer>()> start;
};

struct Backend {
    std::string name;  ///< "cpu" or "gpu", as --json tells it
    std::string note;  ///< one line for people: what was chosen and why
    std::unique_ptr<Tracer> tracer;
};

/// The tracer to use, for rays up to `max_range_m`. With `gpu`, throws UnavailableError with the reason when
/// there is no usable one; with `automatic`, takes the CPU then and says why in the note.
Backend make_backend(BackendChoice choice, const GpuOffer& gpu, float max_range_m = kMaxRange_m);

}  // namespace citysplat::trace
