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

SplatParams SplatParams::of(Method method) {
    if (method == Method::basic) return paper(method);
    SplatParams p;
    p.method = method;
    if (method == Method::descriptors) {
        p.sparse_reach_m = 0;
        p.sparse_points = {0, 12, 0, 0};  // without classes wide balls mix walls and ground
        p.group_factor[0] = p.group_factor[1] = 1.5;
        p.resample_group[2] = true;  // a scan line on a wall is linear, too
    }
    return p;
}

SplatParams SplatParams::paper(Method method) {
    SplatParams p;
    p.method = method;
    switch (method) {
        case Method::basic:
            p.group_factor = {1, 1, 1, 1};
            break;
        case Method::adaptive:
            p.group_factor = {3, 1, 0.33, 0.25};
            break;
        case Method::descriptors:
            p.group_factor = {2, 2, 0.33, 0.25};
            break;
    }
    p.error_factor = p.group_factor;
    p.least_reach_m = {0, 0, 0, 0};
    p.suppression = 0.2;
    p.resample = method != Method::basic;
    p.resample_group = {true, true, true, true};
    p.least_points = {2, 2, 2, 2};
    p.disc_fill = p.lateral_noise = {0, 0, 0, 0};
    p.sparse_points = {0, 0, 0, 0};
    p.sparse_discs = {false, false, false, false};
    p.sparse_reach_m = 0;
    return p;
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
    for (const double reach : least_reach_m) require(within(reach, 0, 5), "least_reach_m", "from 0 to 5");
    for (const double factor : error_factor)
        require(within(factor, 0.01, 10), "error_factor", "from 0.01 to 10");
    require(within(smoothness, -1, 1), "smoothness", "from -1 to 1");
    require(within(suppression, 0, 1), "suppression", "from 0 to 1");
    require(within(denoise_sigmas, 0, 1000), "denoise_sigmas", "from 0 (off) to 1000");
    for (const int least : least_points) require(least >= 1 && least <= 100, "least_points", "from 1 to 100");
    require(within(least_radius_m, 0.001, 0.1), "least_radius_m", "from 0.001 to 0.1");
    for (const int many : sparse_points)
        require(many >= 0 && many <= 1000, "sparse_points", "from 0 (off) to 1000");
    require(within(sparse_radius_m, 0.01, 1), "sparse_radius_m", "from 0.01 to 1");
    require(within(sparse_reach_m, 0, 5), "sparse_reach_m", "from 0 (off) to 5");
    require(within(sparse_thickness, 0, 10), "sparse_thickness", "from 0 to 10");
    for (const double fill : disc_fill) require(within(fill, 0, 10), "disc_fill", "from 0 (off) to 10");
    for (const double noise : lateral_noise)
        require(within(noise, 0, 10), "lateral_noise", "from 0 (off) to 10");
    require(within(radius_cap_m, 0.01, 1.5), "radius_cap_m", "from 0.01 to 1.5");
}

void SplatParams::add_to(Hasher& hasher) const {
    hasher.text(to_string(method)).number(neighbours);
    for (const double factor : group_factor) hasher.number(factor);
    for (const double reach : least_reach_m) hasher.number(reach);
    for (const double factor : error_factor) hasher.number(factor);
    hasher.number(smoothness).number(suppression).number(denoise_sigmas).number(resample);
    for (const bool takes_part : resample_group) hasher.number(takes_part);
    for (const int least : least_points) hasher.number(least);
    for (const double fill : disc_fill) hasher.number(fill);
    for (const double noise : lateral_noise) hasher.number(noise);
    for (const int many : sparse_points) hasher.number(many);
    for (const bool kept : sparse_discs) hasher.number(kept);
    hasher.number(sparse_radius_m)
        .number(sparse_reach_m)
        .number(sparse_thickness)
        .number(least_radius_m)
        .number(radius_cap_m);
}

}  // namespace citysplat::splat
