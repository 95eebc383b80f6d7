#pragma once

#include "core/hash.hpp"
#include "core/splat_hd.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace citysplat::splat {

/// How points are sorted into the four groups: not at all (§3.1 of the paper), by their semantic class
/// (§3.2), or by the shape of their neighbourhood (§3.3).
enum class Method : std::uint8_t { basic = 0, adaptive = 1, descriptors = 2 };

std::string_view to_string(Method method);
/// Nothing when the name is none of basic, adaptive, descriptors.
std::optional<Method> method_from(std::string_view name);

/// Parameters of AdaSplats ("the paper": Richa et al., Remote Sensing 2022, 14, 6262), with its values as
/// defaults except where a field says otherwise. Every field changes results and is part of the tiles' key.
struct SplatParams {
    Method method = Method::adaptive;
    int neighbours = 40;  ///< K
    /// Factors on K and R̄ by group, in the order of SplatGroup. Used by `adaptive`; `descriptors` takes the
    /// last two from here and `planar_factor` for both ground and surface.
    std::array<double, 4> group_factor{3.0, 1.0, 0.33, 0.25};
    /// Factors on Ē by group. The paper has 3, 1, 0.33, 0.25; why not here:
    /// docs/adr/0303-departures-from-the-paper.md.
    std::array<double, 4> error_factor{3.0, 1.5, 1.0, 1.0};
    double planar_factor = 2.0;
    double smoothness = 0.6;  ///< β: least cosine between the normals of a splat and of a point it takes in
    /// α: points within α·r of a splat's seed start no splat of their own. The paper has 0.2; see the record.
    double suppression = 0.5;
    double denoise_sigmas = 3;  ///< 0 switches denoising off
    bool resample = true;       ///< §3.4: even out the density and generate a second time
    int least_points = 2;       ///< a splat of fewer points is not kept
    double radius_cap_m = 1.5;  ///< neighbourhoods count as at most this wide in the mean R̄

    /// Throws ConfigError naming the field.
    void validate() const;
    void add_to(Hasher& hasher) const;
};

}  // namespace citysplat::splat
