#include "splat/splat_params.hpp"

#include "core/error.hpp"

#include <cmath>
#include <string>

namespace citysplat::splat {

std::string_view to_string(Method method) {
    switch (method) {
        case Method::basic:
            return "basic";
        case Method::adaptive:
            return "adaptive";
        case Method::descriptors:
            return "descriptors";
    }
    return "unknown";
}

std::optional<Method> method_from(std::string_view name) {
    for (const Method method : {Method::basic, Method::adaptive, Method::descriptors})
        if (name == to_string(method)) return method;
    return std::nullopt;
}

namespace {

void require(bool holds, const char* field, const char* rule) {
    if (!holds) throw ConfigError(std::string("splat parameter ") + field + " must be " + rule);
}

bool within(double v, double low, double high) { return std::isfinite(v) && v >= low && v <= high; }

}  // namespace

void SplatParams::validate() const {
    require(to_string(method) != "unknown", "method", "basic, adaptive or descriptors");
    require(neighbours >= 3 && neighbours <= 200, "neighbours", "from 3 to 200");
    for (const double factor : group_factor)
        require(within(factor, 0.01, 5), "group_factor", "from 0.01 to 5");
    for (const double factor : error_factor)
        require(within(factor, 0.01, 10), "error_factor", "from 0.01 to 10");
    require(within(planar_factor, 0.01, 5), "planar_factor", "from 0.01 to 5");
    require(within(smoothness, -1, 1), "smoothness", "from -1 to 1");
    require(within(suppression, 0, 1), "suppression", "from 0 to 1");
    require(within(denoise_sigmas, 0, 1000), "denoise_sigmas", "from 0 (off) to 1000");
    require(least_points >= 2 && least_points <= 100, "least_points", "from 2 to 100");
    require(within(radius_cap_m, 0.01, 1.5), "radius_cap_m", "from 0.01 to 1.5");
}

void SplatParams::add_to(Hasher& hasher) const {
    hasher.text(to_string(method)).number(neighbours);
    for (const double factor : group_factor) hasher.number(factor);
    for (const double factor : error_factor) hasher.number(factor);
    hasher.number(planar_factor).number(smoothness).number(suppression).number(denoise_sigmas);
    hasher.number(resample).number(least_points).number(radius_cap_m);
}

}  // namespace citysplat::splat
