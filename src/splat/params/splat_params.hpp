#pragma once

#include "core/hash.hpp"
#include "model/splat_hd.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace citysplat::splat {

/// How points are sorted into the four groups: not at all (§3.1 of the paper), by their semantic class
/// (§3.2), or by the shape of their neighbourhood (§3.3). `surfels` is another model: LiDARsim's discs, one
/// for each small voxel (generation/surfels.hpp).
enum class Method : std::uint8_t { basic = 0, adaptive = 1, descriptors = 2, surfels = 3 };
inline constexpr std::array kMethods{Method::basic, Method::adaptive, Method::descriptors, Method::surfels};

std::string_view to_string(Method method);
/// Nothing when no method has this name.
std::optional<Method> method_from(std::string_view name);

/// Parameters of AdaSplats ("the paper": Richa et al., Remote Sensing 2022, 14, 6262). Every field changes
/// results and is part of the tiles' key, where its method uses it. Arrays are by group, in the order of
/// SplatGroup. The fields hold the values for `adaptive`; use of() for the other methods and paper() for what
/// the paper says. Why the two differ: docs/adr/0303-departures-from-the-paper.md.
struct SplatParams {
    Method method = Method::adaptive;
    int neighbours = 40;                                       ///< K
    std::array<double, 4> group_factor{1.5, 1.0, 0.33, 0.25};  ///< on K and R̄
    /// Balls are not smaller than this, if they hold no more than K points: R̄ follows the densest part of a
    /// survey, the width of what is flat does not.
    std::array<double, 4> least_reach_m{0.15, 0.15, 0, 0};
    std::array<double, 4> error_factor{3.0, 3.0, 3.0, 3.0};  ///< on Ē
    double smoothness = 0.6;  ///< β: least cosine between the normals of a splat and of a point it takes in
    /// α: points within α·r of a splat's seed, and within α·r of its centre, start no splat of their own.
    double suppression = 0.6;
    double denoise_sigmas = 3;  ///< 0 switches denoising off
    bool resample = true;       ///< §3.4: even out the density and generate a second time
    /// Groups that take part in resampling; the first splats of the others stand.
    std::array<bool, 4> resample_group{true, true, false, false};
    /// A splat of fewer points is not kept. Where 1 is enough, a splat has at least `least_radius_m`.
    std::array<int, 4> least_points{4, 4, 1, 1};
    double least_radius_m = 0.01;
    /// Where the ball holds fewer points than this, the plane is asked of a wider one, among points of the
    /// same class, and taken if they lie on one. A few returns a square metre are all there is of a far wall.
    /// With `adaptive` the splat grows in the wider ball, too. With `descriptors`, where nothing keeps walls
    /// and ground apart, it takes the normal and the group alone; there lone scan lines are asked as well,
    /// however many points they have.
    std::array<int, 4> sparse_points{20, 20, 0, 0};
    double sparse_reach_m = 0.45;
    int sparse_neighbours = 40;  ///< of the wider ball, at most
    /// They lie on a plane if their spread across it is at most this many times the bound of ε.
    double sparse_thickness = 0.7;
    /// A splat of fewer than `least_points` is kept all the same if its group is marked here and its ball
    /// holds at least three, but fewer than `sparse_points`. It stays in the place of its seed, faces the
    /// sensor, and is small.
    std::array<bool, 4> sparse_discs{false, true, false, false};
    double sparse_radius_m = 0.05;  ///< at most
    /// Discs are centred on their points and end where the points do: their radius is at most this times that
    /// of a full disc with the same spread across its narrow direction. 0: as the paper (eq. 5 and 6).
    std::array<double, 4> disc_fill{0.95, 0.95, 1.1, 1.1};
    /// Where this is not 0 the normal is that of the plane that predicts the ranges best, with so much noise
    /// across the rays, in units of Ē: thin things turn to the sensor. 0: PCA.
    std::array<double, 4> lateral_noise{0, 0, 0.5, 0.5};
    /// A disc that is centred on its points still has its seed within this share of its radius.
    double seed_inside = 0.8;
    /// A return stands for the part of the surface up to half-way to the next one: the radius is at least
    /// this share of the sensor's angular step (Calibration::angular_step_rad) times the range of the seed,
    /// up to a limit. Where scans lie on top of one another a return stands for less: for its share of the
    /// neighbourhood's area, here the radius of that share times a factor. It changes the radius alone: which
    /// splats there are is decided without it. Small discs of few points stay small.
    double range_radius = 1.0 / 3;
    /// The same where even the wider ball of `sparse_reach_m` holds a lone scan line (`descriptors`): nothing
    /// lies beside it, so discs of neighbouring returns must touch, or rays pass between them.
    double line_range_radius = 0.5;
    double range_radius_limit_m = 0.15;
    double range_radius_spacing = 0.35;
    /// A crease is where a ball holds two surfaces: the plane of all its points is neither, and growth ends
    /// at once. There the plane comes from this many nearest points of the same class (0: no such splats),
    /// with this noise across the rays as in `lateral_noise`. The disc is small.
    int crease_points = 8;
    double crease_noise = 0.5;
    double crease_radius_m = 0.05;  ///< at most
    double radius_cap_m = 1.5;      ///< neighbourhoods count as at most this wide in the mean R̄
    /// Of `surfels`, which uses nothing else: one point for each cube of this width, …
    double surfel_voxel_m = 0.04;
    double surfel_reach_m = 0.2;  ///< … its normal by PCA of the points of other cubes within this distance,
    int surfel_neighbours = 200;  ///< the nearest of them if there are more.
    /// LiDARsim does not tell the radius of its discs. √2 voxels: a surface that has a point in each cube is
    /// closed, wherever in the cube the point is.
    double surfel_radius_m = 0.0566;

    /// Our values for a method.
    static SplatParams of(Method method);
    /// The paper's values for a method.
    static SplatParams paper(Method method);

    /// Calls visit(name, field, least, most) for every field but the method, always in the same order. Fields
    /// are bool, int or double, or arrays of them by group.
    template <class Self, class Visit>
    static void for_each_field(Self& p, const Visit& visit) {
        visit("neighbours", p.neighbours, 3, 200);
        visit("group_factor", p.group_factor, 0.01, 5);
        visit("least_reach_m", p.least_reach_m, 0, 5);
        visit("error_factor", p.error_factor, 0.01, 10);
        visit("smoothness", p.smoothness, -1, 1);
        visit("suppression", p.suppression, 0, 1);
        visit("denoise_sigmas", p.denoise_sigmas, 0, 1000);
        visit("resample", p.resample, 0, 1);
        visit("resample_group", p.resample_group, 0, 1);
        visit("least_points", p.least_points, 1, 100);
        visit("least_radius_m", p.least_radius_m, 0.001, 0.1);
        visit("sparse_points", p.sparse_points, 0, 1000);
        visit("sparse_reach_m", p.sparse_reach_m, 0, 5);
        visit("sparse_neighbours", p.sparse_neighbours, 3, 1000);
        visit("sparse_thickness", p.sparse_thickness, 0, 10);
        visit("sparse_discs", p.sparse_discs, 0, 1);
        visit("sparse_radius_m", p.sparse_radius_m, 0.01, 1);
        visit("disc_fill", p.disc_fill, 0, 10);
        visit("lateral_noise", p.lateral_noise, 0, 10);
        visit("seed_inside", p.seed_inside, 0, 1);
        visit("range_radius", p.range_radius, 0, 2);
        visit("line_range_radius", p.line_range_radius, 0, 2);
        visit("range_radius_limit_m", p.range_radius_limit_m, 0.01, 1);
        visit("range_radius_spacing", p.range_radius_spacing, 0, 10);
        visit("crease_points", p.crease_points, 0, 20);
        visit("crease_noise", p.crease_noise, 0.01, 10);
        visit("crease_radius_m", p.crease_radius_m, 0.01, 1);
        visit("radius_cap_m", p.radius_cap_m, 0.01, 1.5);
        visit("surfel_voxel_m", p.surfel_voxel_m, 0.01, 1);
        visit("surfel_reach_m", p.surfel_reach_m, 0.01, 5);
        visit("surfel_neighbours", p.surfel_neighbours, 3, 1000);
        visit("surfel_radius_m", p.surfel_radius_m, 0.001, 1.5);
    }
    /// Whether a field means anything to a method.
    static bool is_used(std::string_view name, Method method) {
        return name.starts_with("surfel_") == (method == Method::surfels);
    }

    /// Throws ConfigError naming the field.
    void validate() const;
    void add_to(Hasher& hasher) const;

    friend bool operator==(const SplatParams&, const SplatParams&) = default;
};

}  // namespace citysplat::splat
