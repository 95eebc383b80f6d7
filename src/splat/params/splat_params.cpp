#include "splat/params/splat_params.hpp"

#include "core/error.hpp"
#include "splat/params/field_list.hpp"

namespace citysplat::splat {

std::string_view to_string(Method method) {
    switch (method) {
        case Method::basic:
            return "basic";
        case Method::adaptive:
            return "adaptive";
        case Method::descriptors:
            return "descriptors";
        case Method::surfels:
            return "surfels";
    }
    return "unknown";
}

std::optional<Method> method_from(std::string_view name) {
    for (const Method method : kMethods)
        if (name == to_string(method)) return method;
    return std::nullopt;
}

SplatParams SplatParams::of(Method method) {
    if (method == Method::basic || method == Method::surfels) return paper(method);
    SplatParams p;
    p.method = method;
    if (method == Method::descriptors) {
        p.sparse_points = {12, 12, 12, 12};
        p.sparse_neighbours = 200;  // several scan lines
        p.range_radius_spacing = 1;
        p.group_factor[0] = p.group_factor[1] = 1.5;
        p.resample_group[2] = true;  // a scan line on a wall is linear, too
    }
    return p;
}

SplatParams SplatParams::paper(Method method) {
    SplatParams p;
    p.method = method;
    if (method == Method::surfels) return p;  // its paper says nothing of the fields below
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
        case Method::surfels:
            break;
    }
    p.error_factor = p.group_factor;
    p.least_reach_m = {0, 0, 0, 0};
    p.suppression = 0.2;
    p.resample = method != Method::basic;
    p.resample_group = {true, true, true, true};
    p.least_points = {2, 2, 2, 2};
    p.disc_fill = p.lateral_noise = {0, 0, 0, 0};
    p.crease_points = 0;
    p.sparse_points = {0, 0, 0, 0};
    p.sparse_discs = {false, false, false, false};
    p.sparse_reach_m = 0;
    p.range_radius = p.line_range_radius = 0;
    return p;
}

void SplatParams::validate() const {
    if (to_string(method) == "unknown")
        throw ConfigError("splat parameter method must be basic, adaptive, descriptors or surfels");
    check_fields(*this, "splat");
}

void SplatParams::add_to(Hasher& hasher) const {
    hasher.text(to_string(method));
    for_each_field(*this, [&](std::string_view name, const auto& field, double, double) {
        if (!is_used(name, method)) return;
        for_each_value(field, [&](auto value) { hasher.number(value); });
    });
}

}  // namespace citysplat::splat
