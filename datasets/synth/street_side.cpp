#include "datasets/synth/block.hpp"

#include <cmath>

namespace citysplat::synth {

namespace {

constexpr Surface kSteel{label::pole, 40, Pattern::plain};
constexpr Surface kCastIron{label::pole, 22, Pattern::plain};
constexpr Surface kSignFront{label::traffic_sign, 90, Pattern::plain};
constexpr Surface kSignPost{label::pole, 45, Pattern::plain};
constexpr Surface kSignalBox{label::traffic_light, 15, Pattern::plain};
constexpr Surface kSignalLens{label::traffic_light, 60, Pattern::plain};
constexpr Surface kWood{label::bench, 32, Pattern::plain};

/// The place (x, y) on the sidewalk as a frame on the ground.
Placed spot(const StreetSide& side, double x, double y, double yaw_rad = 0) {
    return side.frame.at({x, y, side.height(x, y)}, yaw_rad);
}

void add_lamp(const Placed& at, Dice& dice) {
    const double height = dice.between(6.5, 8.0), reach = 1.6;
    at.cone({0, 0, -0.1}, {0, 0, 0.9}, 0.11, 0.1, kCastIron);
    at.cone({0, 0, 0.9}, {0, 0, height}, 0.075, 0.045, kCastIron);
    at.cone({0, 0, height}, {0, -reach, height + 0.45}, 0.04, 0.03, kCastIron);
    at.box({0, -reach - 0.2, height + 0.42}, {0.26, 0.62, 0.12}, kCastIron);
}

/// Signs look along +x, at the traffic that comes from there.
void add_sign(const Placed& at, Dice& dice) {
    const double height = dice.between(2.3, 2.7);
    at.bar({0, 0, -0.1}, {0, 0, height + 0.35}, 0.03, kSignPost);
    const int kind = dice.below(3);
    if (kind == 0) {
        at.disc({0.05, 0, height}, {1, 0, 0}, 0.3, kSignFront);
    } else if (kind == 1) {
        at.triangle({0.05, -0.38, height - 0.22}, {0.05, 0.38, height - 0.22}, {0.05, 0, height + 0.44},
                    kSignFront);
    } else {
        at.quad({0.05, -0.3, height - 0.3}, {0, 0.6, 0}, {0, 0, 0.6}, kSignFront);
    }
    if (dice.chance(0.4)) at.quad({0.05, -0.3, height - 0.72}, {0, 0.6, 0}, {0, 0, 0.28}, kSignFront);
}

void add_signal_head(const Placed& at, Vec3d centre) {
    at.box(centre, {0.22, 0.26, 0.82}, kSignalBox);
    for (const double z : {-0.26, 0.0, 0.26}) {
        const Vec3d lens = centre + Vec3d{0.11, 0, z};
        at.cone(lens, lens + Vec3d{0.14, 0, 0}, 0.1, 0.1, kSignalLens);
    }
}

void add_traffic_light(const Placed& at, Dice& dice) {
    at.cone({0, 0, -0.1}, {0, 0, 0.4}, 0.13, 0.1, kSteel);
    at.bar({0, 0, 0.4}, {0, 0, 3.4}, 0.06, kSteel);
    add_signal_head(at, {0.16, 0, 2.75});
    if (dice.chance(0.5)) {  // an arm over the road
        at.bar({0, 0, 3.4}, {0, 0, 5.6}, 0.06, kSteel);
        at.cone({0, 0, 5.5}, {0, -4.2, 5.7}, 0.05, 0.035, kSteel);
        add_signal_head(at, {0.1, -4.0, 5.2});
    }
}

void add_bench(const Placed& at) {
    for (int slat = 0; slat < 4; ++slat) at.box({0, -0.18 + 0.12 * slat, 0.45}, {1.7, 0.09, 0.035}, kWood);
    for (int slat = 0; slat < 3; ++slat)
        at.box({0, 0.28 + 0.02 * slat, 0.58 + 0.13 * slat}, {1.7, 0.03, 0.09}, kWood);
    for (const double x : {-0.7, 0.7}) {
        at.box({x, 0, 0.22}, {0.05, 0.42, 0.42}, kWood);
        at.bar({x, 0.25, 0.4}, {x, 0.34, 0.92}, 0.022, kWood);
    }
}

void add_bollard(const Placed& at) {
    at.bar({0, 0, -0.1}, {0, 0, 0.85}, 0.05, kCastIron);
    at.sphere({0, 0, 0.9}, 0.065, kCastIron);
}

void add_litter_bin(const Placed& at) {
    at.cone({0, 0, 0.15}, {0, 0, 0.85}, 0.2, 0.24, kCastIron);
    at.bar({0, 0, -0.1}, {0, 0, 0.2}, 0.04, kCastIron);
}

void add_furniture(const StreetSide& side) {
    Dice dice(rng::key(side.key, 1));
    const bool avenue = dice.chance(0.7);  // trees in a row
    const double rhythm = dice.between(8.0, 11.0), lamp_every = 3;
    int place = 0;
    for (double x = 4.5; x < side.length - 3.0; x += rhythm / 2, ++place) {
        const double kind = dice.between(0, 1);
        if (place % 2 == 0 && (place / 2) % static_cast<int>(lamp_every) == 1) {
            add_lamp(spot(side, x, 0.55), dice);
        } else if (place % 2 == 0 && avenue) {
            add_tree(spot(side, x, 0.9, dice.between(0, 6)), dice, 2.3);
        } else if (kind < 0.22) {
            add_bench(spot(side, x, 0.9));
        } else if (kind < 0.38) {
            add_litter_bin(spot(side, x, 0.5));
        } else if (kind < 0.55) {
            add_sign(spot(side, x, 0.4), dice);
        } else if (kind < 0.7) {
            for (int i = 0; i < 3; ++i) add_bollard(spot(side, x + 1.2 * (i - 1), 0.35));
        }
    }
}

/// Traffic drives towards x = 0 on the road of this side: lights and signs stand there.
void add_crossing_signals(const StreetSide& side) {
    Dice dice(rng::key(side.key, 2));
    if (dice.chance(0.6)) {
        add_traffic_light(spot(side, 0.3, 0.45), dice);
    } else {
        add_sign(spot(side, 0.6, 0.45), dice);
    }
    for (const double x : {-1.0, -2.2}) add_bollard(side.frame.at({x, 0.4, side.height(0, 0.0)}));
}

void add_parked_vehicles(const StreetSide& side) {
    Dice dice(rng::key(side.key, 3));
    const double across = plan::kRoadHalf - plan::kParkingOffset;
    const double road = -plan::kKerb + plan::kCrown * (1 - (plan::kParkingOffset * plan::kParkingOffset) /
                                                               (plan::kRoadHalf * plan::kRoadHalf));
    const double share = dice.between(0.35, 0.85);
    for (double x = 7.5; x < side.length - 7.0; x += 5.7) {
        if (!dice.chance(share)) continue;
        const double kind = dice.between(0, 1), shift = dice.between(-0.3, 0.3),
                     aside = dice.between(-0.12, 0.08);
        const double yaw = exact::kPi + dice.between(-0.03, 0.03);
        const Placed at =
            side.frame.at({x + shift, -across + aside, side.base + side.grade * (x + shift) + road}, yaw);
        // It looks along −x of the street side.
        add_vehicle(at.sloped(-side.grade),
                    kind < 0.45  ? VehicleKind::hatchback
                    : kind < 0.8 ? VehicleKind::saloon
                                 : VehicleKind::van,
                    dice, label::parked_vehicle);
    }
}

}  // namespace

void add_street_side(const StreetSide& side) {
    add_furniture(side);
    add_crossing_signals(side);
    add_parked_vehicles(side);
}

}  // namespace citysplat::synth
