#include "datasets/synth/block.hpp"

#include <cmath>

namespace citysplat::synth {

namespace {

constexpr Surface kBark{label::vegetation, 25, Pattern::plain};

Vec3d random_direction(Dice& dice) {
    const double z = dice.between(-1, 1), r = std::sqrt(1 - z * z);
    const auto turn = exact::sin_cos(dice.between(0, 2 * exact::kPi));
    return {r * turn.cos, r * turn.sin, z};
}

Surface leaf(Dice& dice) {
    return {label::vegetation, static_cast<std::uint8_t>(40 + dice.below(16)), Pattern::plain};
}

/// Leaves around a point, as a ball that thins out.
void add_foliage(const Placed& place, Dice& dice, Vec3d centre, double radius, int leaves) {
    for (int i = 0; i < leaves; ++i) {
        // Denser towards the outside, where the light is.
        const double u = dice.between(0.1, 1.0), shell = radius * std::sqrt(u);
        const Vec3d at = centre + shell * random_direction(dice);
        place.disc(at, random_direction(dice), dice.between(0.035, 0.075), leaf(dice));
    }
}

}  // namespace

void add_tree(const Placed& place, Dice& dice, double crown_limit_m) {
    const double trunk = dice.between(2.2, 3.0), radius = dice.between(0.1, 0.18);
    const double crown = crown_limit_m * dice.between(0.75, 1.0),
                 top = trunk + crown * dice.between(1.6, 2.0);
    const Vec3d fork{dice.between(-0.1, 0.1), dice.between(-0.1, 0.1), trunk};
    place.cone({0, 0, -0.2}, fork, radius * 1.25, radius * 0.85, kBark);
    place.cone(fork, {fork.x, fork.y, top - crown * 0.4}, radius * 0.8, 0.02, kBark);
    const int branches = 6 + dice.below(5);
    for (int i = 0; i < branches; ++i) {
        const auto turn = exact::sin_cos(2 * exact::kPi * (i + dice.between(0, 0.6)) / branches);
        const double out = crown * dice.between(0.45, 0.72), start = trunk + dice.between(-0.2, 0.9);
        const double rise = dice.between(0.35, 0.85) * (top - trunk) - crown * 0.15;
        const Vec3d from{fork.x, fork.y, start}, tip{out * turn.cos, out * turn.sin, trunk + rise};
        place.cone(from, tip, radius * 0.45, 0.015, kBark);
        const Vec3d elbow = from + 0.55 * (tip - from);
        const Vec3d twig =
            elbow + 0.5 * out * (Vec3d{turn.cos, turn.sin, 0.5} + 0.6 * random_direction(dice));
        place.cone(elbow, twig, radius * 0.2, 0.01, kBark);
        add_foliage(place, dice, tip, crown * 0.38, 150 + dice.below(60));
        add_foliage(place, dice, twig, crown * 0.26, 60 + dice.below(40));
    }
    add_foliage(place, dice, {fork.x, fork.y, top - crown * 0.35}, crown * 0.45, 220);
}

void add_bush(const Placed& place, Dice& dice, Vec3d size) {
    for (int i = 0; i < 5; ++i)
        place.cone({0, 0, -0.05},
                   {dice.between(-0.3, 0.3) * size.x, dice.between(-0.3, 0.3) * size.y, 0.7 * size.z}, 0.015,
                   0.006, kBark);
    const int leaves = static_cast<int>(500 * size.x * size.z);
    for (int i = 0; i < leaves; ++i) {
        const Vec3d d = std::sqrt(dice.between(0.2, 1.0)) * random_direction(dice);
        const Vec3d at{0.5 * size.x * d.x, 0.5 * size.y * d.y, 0.5 * size.z * (1 + d.z)};
        place.disc(at, random_direction(dice), dice.between(0.02, 0.045), leaf(dice));
    }
}

}  // namespace citysplat::synth
