#include "datasets/synth/drive.hpp"

#include <cmath>

namespace citysplat::synth {

namespace {

using namespace plan;

constexpr double kTurnSpeed = 3.6, kUTurnSpeed = 2.6;
constexpr double kRightRadius = 4.5, kLeftRadius = 7.0, kUTurnRadius = 5.0;

/// Draws the path piece by piece with a pen that has a position and a heading.
class Pen {
  public:
    Pen(double x, double y, double heading_rad) : x_(x), y_(y), heading_(heading_rad) {}

    void line(double length_m, double speed) { add(length_m, 0, speed); }
    void arc(double radius, double angle_rad, double speed) {
        add(radius * std::fabs(angle_rad), (angle_rad > 0 ? 1 : -1) / radius, speed);
    }
    double drawn_m() const { return drawn_; }
    std::vector<PathPiece> take() { return std::move(pieces_); }

  private:
    void add(double length_m, double curvature, double speed) {
        if (length_m < 1e-9) return;
        pieces_.push_back({drawn_, length_m, x_, y_, heading_, curvature, speed});
        const auto begin = exact::sin_cos(heading_);
        if (curvature == 0) {
            x_ += length_m * begin.cos;
            y_ += length_m * begin.sin;
        } else {
            heading_ += length_m * curvature;
            const auto end = exact::sin_cos(heading_);
            x_ += (end.sin - begin.sin) / curvature;
            y_ += (begin.cos - end.cos) / curvature;
        }
        drawn_ += length_m;
    }

    std::vector<PathPiece> pieces_;
    double x_, y_, heading_, drawn_ = 0;
};

enum class Turn { straight, left, right, about };

/// How far before the node the manoeuvre begins, and how far behind it ends.
struct Reach {
    double before, after;
};
Reach reach_of(Turn turn) {
    switch (turn) {
        case Turn::left:
            return {kLeftRadius - kLaneOffset, kLeftRadius - kLaneOffset};
        case Turn::right:
            return {kRightRadius + kLaneOffset, kRightRadius + kLaneOffset};
        case Turn::about: {
            const double side = kLaneOffset + kUTurnRadius;
            const double s = std::sqrt(4 * kUTurnRadius * kUTurnRadius - side * side);
            return {s, s};
        }
        case Turn::straight:
            break;
    }
    return {0, 0};
}

void draw_turn(Pen& pen, Turn turn) {
    const double quarter = exact::kPi / 2;
    if (turn == Turn::left) pen.arc(kLeftRadius, quarter, kTurnSpeed);
    if (turn == Turn::right) pen.arc(kRightRadius, -quarter, kTurnSpeed);
    if (turn == Turn::about) {  // swing out, round, swing in
        const double swing = exact::acos((kLaneOffset + kUTurnRadius) / (2 * kUTurnRadius));
        pen.arc(kUTurnRadius, -swing, kUTurnSpeed);
        pen.arc(kUTurnRadius, exact::kPi + 2 * swing, kUTurnSpeed);
        pen.arc(kUTurnRadius, -swing, kUTurnSpeed);
    }
}

Turn draw_next_turn(Dice& dice, int crossing) {
    if (crossing == 0) return Turn::about;
    if (crossing == 1) return Turn::right;
    const double u = dice.between(0, 1);
    return u < 0.55 ? Turn::straight : u < 0.78 ? Turn::right : Turn::left;
}

}  // namespace

std::vector<PathPiece> plan_route(std::uint64_t seed, double length_m) {
    constexpr double kFirstStretch = 62.0;  // short drives meet the turn about, too
    Dice dice(key_of(seed, Purpose::route, {}));
    Pen pen(kPitch - kFirstStretch, -kLaneOffset, 0);
    Turn turn = draw_next_turn(dice, 0);
    double straight = kFirstStretch - reach_of(turn).before;
    for (int crossing = 1; pen.drawn_m() < length_m; ++crossing) {
        pen.line(straight, dice.between(7.0, 9.5));
        draw_turn(pen, turn);
        const Turn next = draw_next_turn(dice, crossing);
        straight = kPitch - reach_of(turn).after - reach_of(next).before;
        turn = next;
    }
    return pen.take();
}

}  // namespace citysplat::synth
