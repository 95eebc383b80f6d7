#include "datasets/synth/block.hpp"

#include <vector>

namespace citysplat::synth {

namespace {

/// A station of the lower body's outline, from the tail to the nose: the sheet metal's upper edge.
struct Station {
    double x, top, half_width;
};

struct Shape {
    std::vector<Station> body;
    double sill;                                 ///< height of the lower edge
    double cabin_back, cabin_front, cabin_half;  ///< foot of the windows
    double roof_back, roof_front, roof_half, roof;
    double axle_back, axle_front, wheel;
};

Shape shape_of(VehicleKind kind) {
    switch (kind) {
        case VehicleKind::hatchback:
            return {{{-1.95, 0.55, 0.74},
                     {-1.9, 0.93, 0.8},
                     {-1.2, 0.95, 0.85},
                     {0.75, 0.92, 0.85},
                     {1.55, 0.78, 0.8},
                     {1.9, 0.62, 0.7},
                     {1.95, 0.45, 0.68}},
                    0.24,
                    -1.88,
                    0.85,
                    0.8,
                    -1.45,
                    0.1,
                    0.6,
                    1.46,
                    -1.22,
                    1.22,
                    0.3};
        case VehicleKind::saloon:
            return {{{-2.3, 0.5, 0.74},
                     {-2.25, 0.92, 0.8},
                     {-1.4, 0.98, 0.87},
                     {0.8, 0.93, 0.87},
                     {1.85, 0.78, 0.82},
                     {2.22, 0.64, 0.72},
                     {2.28, 0.45, 0.7}},
                    0.24,
                    -1.7,
                    0.9,
                    0.82,
                    -1.0,
                    0.05,
                    0.61,
                    1.44,
                    -1.38,
                    1.38,
                    0.32};
        case VehicleKind::van:
            break;
    }
    return {{{-2.5, 0.5, 0.9},
             {-2.48, 1.1, 0.95},
             {1.2, 1.12, 0.95},
             {2.05, 0.98, 0.9},
             {2.4, 0.8, 0.82},
             {2.45, 0.5, 0.8}},
            0.3,
            -2.47,
            1.45,
            0.94,
            -2.44,
            0.75,
            0.86,
            2.05,
            -1.65,
            1.6,
            0.34};
}

}  // namespace

void add_vehicle(const Placed& at, VehicleKind kind, Dice& dice, std::uint8_t vehicle_label) {
    const Surface paint{vehicle_label, static_cast<std::uint8_t>(12 + dice.below(70)), Pattern::plain};
    const Surface glass{vehicle_label, 10, Pattern::plain}, rubber{vehicle_label, 6, Pattern::plain};
    const bool windowless = kind == VehicleKind::van;
    const Shape s = shape_of(kind);
    const auto edge = [&](const Station& k, double side) { return Vec3d{k.x, side * k.half_width, k.top}; };
    const auto foot = [&](const Station& k, double side) { return Vec3d{k.x, side * k.half_width, s.sill}; };
    for (std::size_t i = 0; i + 1 < s.body.size(); ++i) {
        const Station &a = s.body[i], &b = s.body[i + 1];
        at.face(edge(a, -1), edge(b, -1), edge(b, 1), edge(a, 1), paint);
        for (const double side : {-1.0, 1.0})
            at.face(foot(a, side), foot(b, side), edge(b, side), edge(a, side), paint);
        at.face(foot(a, -1), foot(b, -1), foot(b, 1), foot(a, 1), rubber);
    }
    for (const Station* end : {&s.body.front(), &s.body.back()})
        at.face(foot(*end, -1), foot(*end, 1), edge(*end, 1), edge(*end, -1), paint);

    const double belt = 0.9;
    const auto low = [&](double x, double side) { return Vec3d{x, side * s.cabin_half, belt}; };
    const auto high = [&](double x, double side) { return Vec3d{x, side * s.roof_half, s.roof}; };
    at.face(low(s.cabin_front, -1), low(s.cabin_front, 1), high(s.roof_front, 1), high(s.roof_front, -1),
            glass);
    at.face(low(s.cabin_back, -1), low(s.cabin_back, 1), high(s.roof_back, 1), high(s.roof_back, -1),
            windowless ? paint : glass);
    for (const double side : {-1.0, 1.0})
        at.face(low(s.cabin_back, side), low(s.cabin_front, side), high(s.roof_front, side),
                high(s.roof_back, side), windowless ? paint : glass);
    at.face(high(s.roof_back, -1), high(s.roof_front, -1), high(s.roof_front, 1), high(s.roof_back, 1),
            paint);

    const double tread = s.body[s.body.size() / 2].half_width;
    for (const double x : {s.axle_back, s.axle_front})
        for (const double side : {-1.0, 1.0})
            at.bar({x, side * (tread - 0.18), s.wheel}, {x, side * (tread + 0.02), s.wheel}, s.wheel, rubber);
    for (const double side : {-1.0, 1.0})
        at.box({s.cabin_front - 0.25, side * (tread + 0.09), belt + 0.1}, {0.12, 0.18, 0.14}, paint);
}

}  // namespace citysplat::synth
