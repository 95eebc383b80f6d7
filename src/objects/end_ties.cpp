#include "objects/end_ties.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::objects {

namespace {

/// Neighbouring points err alike: the points of a look count as so many of this deviation (registration.cpp).
constexpr double kIndependentPoints = 200, kPointDeviation_m = 0.02;
/// A surface faces an end when its normal has this much of that direction, and was seen when the ray met it
/// at less than 78 degrees: planes through the points of an edge face places that the sensor did not see.
constexpr double kFacing = 0.7, kLeastCosine = 0.2;

/// Where the outermost surface is that faces an end, along the object; `end` is +1 for the front.
std::optional<double> end_surface(const ObjectSize& size, std::span<const std::vector<ObjectPoint>> looks,
                                  double end) {
    constexpr double kOutermost = 0.02, kDepth_m = 0.05, kLeastShareOfWidth = 0.4;
    constexpr std::size_t kLeastPoints = 40;
    std::vector<Vec3d> seen;
    for (const auto& look : looks)
        for (const ObjectPoint& p : look) {
            // Only from beyond the end.
            const double sensor_x = p.place.x + p.to_sensor.x;
            if (end * sensor_x > size.length_m / 2 && end * p.place.x > 0) seen.push_back(p.place);
        }
    if (seen.size() < kLeastPoints) return std::nullopt;
    std::sort(seen.begin(), seen.end(), [&](Vec3d a, Vec3d b) { return end * a.x < end * b.x; });
    const double outermost =
        seen[static_cast<std::size_t>((1 - kOutermost) * static_cast<double>(seen.size() - 1))].x;
    std::vector<double> at, across;
    for (const Vec3d& p : seen)
        if (std::fabs(p.x - outermost) <= kDepth_m) at.push_back(p.x), across.push_back(p.y);
    std::sort(at.begin(), at.end());
    std::sort(across.begin(), across.end());
    if (at.size() < kLeastPoints) return std::nullopt;
    const std::size_t few = across.size() / 20;
    if (across[across.size() - 1 - few] - across[few] < kLeastShareOfWidth * size.width_m)
        return std::nullopt;
    return at[at.size() / 2];
}

}  // namespace

LookAlong look_along(std::span<const ObjectPoint> placed, const SurfaceMap& surface) {
    LookAlong look;
    double points = 0;
    for (const ObjectPoint& p : placed) {
        points += 1;
        const SurfaceMap::Patch* patch = surface.nearest(p.place);
        if (!patch || std::fabs(patch->normal.x) < kFacing) continue;
        const double towards = dot(patch->normal, p.to_sensor);
        if (std::fabs(towards) < kLeastCosine * length(p.to_sensor)) continue;
        double& held = (patch->normal.x > 0) == (towards > 0) ? look.held_by_front : look.held_by_back;
        held += patch->normal.x * patch->normal.x;
    }
    if (points == 0) return look;
    const double one_point =
        std::min(1.0, kIndependentPoints / points) / (kPointDeviation_m * kPointDeviation_m);
    look.held_by_front *= one_point, look.held_by_back *= one_point;
    return look;
}

std::vector<double> shifts_along(std::span<const LookAlong> looks, std::optional<double> missing_length_m,
                                 const BoxErrors& errors) {
    const double of_box = 1 / (errors.shift_m * errors.shift_m);
    const double of_length = missing_length_m ? 1 / (errors.length_m * errors.length_m) : 0;
    // Unknown are the shifts of the looks and those of what they hold to, front and back. With these two the
    // shifts of the looks are weighted means, so that two equations remain.
    constexpr double kNobody = 1e-9;  // holds an end that nobody saw
    double ff = of_length + kNobody, bb = of_length + kNobody, fb = -of_length;
    double f = of_length * missing_length_m.value_or(0), b = -f;
    for (const LookAlong& look : looks) {
        const double all = of_box + look.held_by_front + look.held_by_back;
        ff += look.held_by_front - look.held_by_front * look.held_by_front / all;
        bb += look.held_by_back - look.held_by_back * look.held_by_back / all;
        fb -= look.held_by_front * look.held_by_back / all;
        f -= look.held_by_front * of_box * look.from_box_m / all;
        b -= look.held_by_back * of_box * look.from_box_m / all;
    }
    const double determinant = ff * bb - fb * fb;
    const double front = (f * bb - fb * b) / determinant, back = (ff * b - f * fb) / determinant;
    std::vector<double> shifts;
    for (const LookAlong& look : looks)
        shifts.push_back((look.held_by_front * front + look.held_by_back * back - of_box * look.from_box_m) /
                         (of_box + look.held_by_front + look.held_by_back));
    return shifts;
}

std::optional<double> missing_length(const ObjectSize& size,
                                     std::span<const std::vector<ObjectPoint>> looks) {
    constexpr double kMostMissing_m = 0.5;  // more is another mistake than that of a box
    const auto front = end_surface(size, looks, 1), back = end_surface(size, looks, -1);
    if (!front || !back) return std::nullopt;
    const double missing_m = size.length_m - (*front - *back);
    if (std::fabs(missing_m) > kMostMissing_m) return std::nullopt;
    return missing_m;
}

}  // namespace citysplat::objects
