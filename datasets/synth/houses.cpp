#include "datasets/synth/block.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::synth {

namespace {

constexpr double kDepth_m = 12.0;  // houses stand in a ring of this depth around the courtyard
constexpr double kSide_m = plan::kPitch - 2 * plan::kStreetHalf;

constexpr Surface kGlass{label::building, 8, Pattern::plain};
constexpr Surface kIron{label::fence, 30, Pattern::plain};
constexpr Surface kRailing{label::building, 25, Pattern::plain};
constexpr Surface kGardenWall{label::wall, 45, Pattern::plain};

/// A stretch of the ring: x along the street, y away from it, z = 0 at the city's datum.
struct Lot {
    Placed frame;
    double x0, x1;
    const Patch* ground;
    bool corner_left, corner_right;  ///< the end wall looks on another street

    double ground_at(double x, double y) const {
        const Vec3d p = frame.point({x, y, 0});
        return ground->height(p.x, p.y);
    }
    double width() const { return x1 - x0; }
};

struct HouseStyle {
    Surface wall, trim, roof;
    int floors;
    double floor_height, bay, window_width, window_low, window_high, recess;
    bool balconies, string_courses, gabled, shutters, awning;
};

HouseStyle draw_style(Dice& dice) {
    HouseStyle s{};
    const auto reflectance = static_cast<std::uint8_t>(38 + dice.below(35));
    s.wall = {label::building, reflectance, Pattern::plain};
    s.trim = {label::building, static_cast<std::uint8_t>(reflectance + 15), Pattern::plain};
    s.roof = {label::building, static_cast<std::uint8_t>(18 + dice.below(15)), Pattern::plain};
    s.floors = 3 + dice.below(4);
    s.floor_height = dice.between(2.9, 3.35);
    s.bay = dice.between(2.3, 3.2);
    s.window_width = dice.between(1.0, 1.4);
    s.balconies = dice.chance(0.4);
    s.window_low = s.balconies ? 0.18 : dice.between(0.75, 0.95);
    s.window_high = dice.between(2.2, 2.45);
    s.recess = dice.between(0.15, 0.32);
    s.string_courses = dice.chance(0.5);
    s.gabled = dice.chance(0.6);
    s.shutters = dice.chance(0.35);
    s.awning = dice.chance(0.2);
    return s;
}

/// Where a wall stands, in the frame of its lot; it is seen from the right of `along`.
struct WallLine {
    Vec3d from;
    double length_m;
    Vec3d along;
};

Facade windowed_wall(const Lot& lot, const WallLine& line, const HouseStyle& s, double base) {
    const auto& [from, length_m, along] = line;
    const int bays = std::max(1, static_cast<int>((length_m - 0.6) / s.bay));
    const double pitch = (length_m - 0.6) / bays, middle = pitch / 2, half = s.window_width / 2;
    const Vec3d direction = lot.frame.vector(along);
    return {lot.frame.point(from),
            direction,
            {direction.y, -direction.x, 0},
            length_m,
            base - from.z + s.floors * s.floor_height,
            0.3,
            base - from.z,
            pitch,
            s.floor_height,
            middle - half,
            middle + half,
            s.window_low,
            s.window_high,
            s.recess,
            bays,
            s.floors,
            s.wall,
            kGlass};
}

void add_balcony(const Placed& at, double width, double depth, const HouseStyle& s) {
    at.box({0, -depth / 2, -0.07}, {width, depth, 0.14}, s.trim);
    const double half = width / 2 - 0.04, front = -depth + 0.04, top = 1.0;
    for (const double z : {0.08, top}) {
        const double radius = z == top ? 0.02 : 0.01;
        at.bar({-half, front, z}, {half, front, z}, radius, kRailing);
        for (const double x : {-half, half}) at.bar({x, 0, z}, {x, front, z}, radius, kRailing);
    }
    const int bars = static_cast<int>(2 * half / 0.11);
    for (int i = 0; i <= bars; ++i) {
        const double x = -half + 2 * half * i / bars;
        at.bar({x, front, 0}, {x, front, top}, 0.008, kRailing);
    }
    for (double y = front + 0.11; y < -0.05; y += 0.11)
        for (const double x : {-half, half}) at.bar({x, y, 0}, {x, y, top}, 0.008, kRailing);
}

void add_roof(const Lot& lot, const HouseStyle& s, double front, double eaves) {
    const Placed& f = lot.frame;
    const double w = lot.width(), depth = kDepth_m - front, rise = s.gabled ? 0.28 * depth : 0;
    if (!s.gabled) {
        f.quad({lot.x0, front, eaves}, {w, 0, 0}, {0, depth, 0}, s.roof);
        return;
    }
    const Vec3d ridge_left{lot.x0, front + depth / 2, eaves + rise},
        ridge_right{lot.x1, front + depth / 2, eaves + rise};
    f.quad({lot.x0, front, eaves}, {w, 0, 0}, {0, depth / 2, rise}, s.roof);
    f.quad({lot.x0, kDepth_m, eaves}, {w, 0, 0}, {0, -depth / 2, rise}, s.roof);
    f.triangle({lot.x0, front, eaves}, {lot.x0, kDepth_m, eaves}, ridge_left, s.wall);
    f.triangle({lot.x1, front, eaves}, {lot.x1, kDepth_m, eaves}, ridge_right, s.wall);
}

void add_chimneys(const Lot& lot, Dice& dice, const HouseStyle& s, double front, double eaves) {
    for (int n = 1 + dice.below(2); n > 0; --n) {
        const double x = dice.between(lot.x0 + 1, lot.x1 - 1), y = dice.between(front + 3, kDepth_m - 2);
        lot.frame.box({x, y, eaves + 1.6}, {0.7, 1.1, 4.4}, s.wall);
    }
}

/// Open shutters beside the windows of the upper floors.
void add_shutters(const Lot& lot, const HouseStyle& s, const Facade& wall, double front, double base) {
    const Surface wood{label::building, 28, Pattern::plain};
    const double leaf = std::min(s.window_width / 2, (wall.pitch_u - s.window_width) / 2 - 0.04);
    const double middle = (s.window_low + s.window_high) / 2, height = s.window_high - s.window_low;
    for (int floor = 1; floor < s.floors; ++floor)
        for (int bay = 0; bay < wall.count_u; ++bay)
            for (const double side : {-1.0, 1.0}) {
                const double x =
                    lot.x0 + wall.first_u + wall.pitch_u * (bay + 0.5) + side * (s.window_width + leaf) / 2;
                lot.frame.box({x, front - 0.03, base + floor * s.floor_height + middle}, {leaf, 0.04, height},
                              wood);
            }
}

/// A cloth roof over the ground floor, two slabs of iron to hold it.
void add_awning(const Lot& lot, double front, double base) {
    const Surface cloth{label::building, 60, Pattern::plain};
    const double reach = 1.3, x0 = lot.x0 + 0.5, width = lot.width() - 1.0;
    const Vec3d edge{width, 0, 0};
    lot.frame.quad({x0, front, base + 2.9}, edge, {0, -reach, -0.45}, cloth);
    lot.frame.quad({x0, front - reach, base + 2.45}, edge, {0, 0, -0.22}, cloth);
    for (const double x : {x0, x0 + width})
        lot.frame.bar({x, front, base + 2.4}, {x, front - reach, base + 2.44}, 0.015, kRailing);
}

/// What breaks up the front: cornice, courses, door, balconies, drainpipe.
struct Front {
    const Facade& wall;
    double y, base;  ///< where the wall stands, and its ground floor
};

void add_front_details(const Lot& lot, Dice& dice, const HouseStyle& s, const Front& at) {
    const auto& [wall, front, base] = at;
    const Placed& f = lot.frame;
    const double w = lot.width(), middle = (lot.x0 + lot.x1) / 2, eaves = base + s.floors * s.floor_height;
    f.box({middle, front - 0.17, eaves - 0.12}, {w, 0.34, 0.22}, s.trim);
    f.box({middle, front - 0.1, eaves - 0.33}, {w, 0.2, 0.2}, s.trim);
    if (s.string_courses)
        for (int floor = 1; floor < s.floors; ++floor)
            f.box({middle, front - 0.04, base + floor * s.floor_height}, {w, 0.08, 0.14}, s.trim);
    const double door_x = lot.x0 + wall.first_u + wall.pitch_u * dice.below(wall.count_u);
    if (door_x - lot.x0 > 0.8) {
        const Surface wood{label::building, 22, Pattern::plain};
        f.box({door_x, front - 0.02, base + 1.05}, {0.95, 0.08, 2.1}, wood);
        f.box({door_x, front - 0.12, base + 2.35}, {1.3, 0.3, 0.1}, s.trim);
    }
    const double pipe_x = lot.x1 - 0.12;
    f.bar({pipe_x, front - 0.09, base - 0.2}, {pipe_x, front - 0.09, eaves - 0.4}, 0.05, s.roof);
    if (s.shutters && !s.balconies) add_shutters(lot, s, wall, front, base);
    if (s.awning && front == 0) add_awning(lot, front, base);
    if (!s.balconies) return;
    const std::uint64_t column_word = dice.word();
    for (int floor = 1; floor < s.floors; ++floor)
        for (int bay = 0; bay < wall.count_u; ++bay) {
            const bool here = (column_word >> (bay % 16) & 1) != 0 && dice.chance(0.8);
            if (!here) continue;
            const double x = lot.x0 + wall.first_u + wall.pitch_u * (bay + 0.5);
            add_balcony(f.at({x, front, base + floor * s.floor_height + s.window_low - 0.02}),
                        std::min(wall.pitch_u - 0.2, s.window_width + 0.9), 0.85, s);
        }
}

void add_house(const Lot& lot, Dice& dice, double front) {
    const HouseStyle s = draw_style(dice);
    const Placed& f = lot.frame;
    double low = 1e9, high = -1e9;
    for (const double x : {lot.x0, lot.x1})
        for (const double y : {front, kDepth_m}) {
            low = std::min(low, lot.ground_at(x, y));
            high = std::max(high, lot.ground_at(x, y));
        }
    const double foot = low - 0.3, base = high + 0.12, eaves = base + s.floors * s.floor_height;
    const double depth = kDepth_m - front;
    const Facade wall = windowed_wall(lot, {{lot.x0, front, foot}, lot.width(), {1, 0, 0}}, s, base);
    auto& facades = f.geometry().of<Facade>();
    facades.push_back(wall);
    facades.push_back(windowed_wall(lot, {{lot.x1, kDepth_m, foot}, lot.width(), {-1, 0, 0}}, s, base));
    const Vec3d up{0, 0, eaves - foot};
    if (lot.corner_left)
        facades.push_back(windowed_wall(lot, {{lot.x0, kDepth_m, foot}, depth, {0, -1, 0}}, s, base));
    else
        f.quad({lot.x0, front, foot}, {0, depth, 0}, up, s.wall);
    if (lot.corner_right)
        facades.push_back(windowed_wall(lot, {{lot.x1, front, foot}, depth, {0, 1, 0}}, s, base));
    else
        f.quad({lot.x1, front, foot}, {0, depth, 0}, up, s.wall);
    add_front_details(lot, dice, s, {wall, front, base});
    add_roof(lot, s, front, eaves);
    add_chimneys(lot, dice, s, front, eaves);
}

/// Railing of thin bars on the lot's street line, following the ground; `foot` above it.
void add_fence(const Lot& lot, double y, double foot, double height) {
    const Placed& f = lot.frame;
    const auto z = [&](double x) { return lot.ground_at(x, y) + foot; };
    const double x0 = lot.x0 + 0.05, x1 = lot.x1 - 0.05;
    for (const double h : {0.12, height - 0.1}) f.bar({x0, y, z(x0) + h}, {x1, y, z(x1) + h}, 0.014, kIron);
    const int bars = static_cast<int>((x1 - x0) / 0.12);
    for (int i = 0; i <= bars; ++i) {
        const double x = x0 + (x1 - x0) * i / bars;
        const bool post = i % 20 == 0 || i == bars;
        f.bar({x, y, z(x) - 0.05}, {x, y, z(x) + height + (post ? 0.1 : 0.0)}, post ? 0.035 : 0.009, kIron);
    }
}

void add_garden(const Lot& lot, Dice& dice, double depth) {
    const int bushes = 1 + dice.below(3);
    for (int i = 0; i < bushes; ++i) {
        const double x = dice.between(lot.x0 + 1, lot.x1 - 1), y = dice.between(1.0, depth - 0.8);
        add_bush(lot.frame.at({x, y, lot.ground_at(x, y)}), dice,
                 {dice.between(0.8, 1.8), dice.between(0.6, 1.0), dice.between(0.7, 1.5)});
    }
    if (depth > 6) {
        const double x = (lot.x0 + lot.x1) / 2, y = depth * 0.5;
        add_tree(lot.frame.at({x, y, lot.ground_at(x, y)}, dice.between(0, 6)), dice, 3.0);
    }
}

/// Low wall with a railing on top.
void add_garden_wall(const Lot& lot) {
    const double z0 = lot.ground_at(lot.x0, 0.1), z1 = lot.ground_at(lot.x1, 0.1), top = 0.5;
    const Placed& f = lot.frame;
    const Vec3d along{lot.width(), 0, z1 - z0}, across{0, 0.2, 0}, up{0, 0, top + 0.2};
    for (const double y : {0.05, 0.25}) f.quad({lot.x0, y, z0 - 0.2}, along, up, kGardenWall);
    for (const double x : {lot.x0, lot.x1})
        f.quad({x, 0.05, (x == lot.x0 ? z0 : z1) - 0.2}, across, up, kGardenWall);
    f.quad({lot.x0, 0.05, z0 + top}, along, across, kGardenWall);
    add_fence(lot, 0.15, top, 0.9);
}

void add_lot(const Lot& lot, Dice& dice) {
    const bool corner = lot.corner_left || lot.corner_right;
    const double kind = corner ? 0 : dice.between(0, 1);
    if (kind < 0.68) {
        add_house(lot, dice, 0);
    } else if (kind < 0.85) {
        add_house(lot, dice, 3.0);
        add_garden_wall(lot);
        add_garden(lot, dice, 2.8);
    } else {
        add_fence(lot, 0.12, 0.0, 1.6);
        add_garden(lot, dice, kDepth_m);
    }
}

}  // namespace

void add_houses(Geometry& geometry, std::uint64_t seed, Cell cell) {
    const double near = plan::kStreetHalf, far = near + kSide_m;
    const Patch ground = geometry.of<Patch>().back();
    const Vec3d corners[4] = {{near, near, 0}, {far, near, 0}, {far, far, 0}, {near, far, 0}};
    for (int side = 0; side < 4; ++side) {
        const bool whole = side % 2 == 0;  // the other two sides stand between these
        const double begin = whole ? 0 : kDepth_m, end = whole ? kSide_m : kSide_m - kDepth_m;
        const Placed frame(geometry, corners[side], side * exact::kPi / 2);
        Dice dice(rng::key(key_of(seed, Purpose::houses, cell), static_cast<std::uint64_t>(side)));
        for (double x = begin; x < end;) {
            double next = x + dice.between(8.5, 14.5);
            if (end - next < 8.5) next = end;
            add_lot({frame, x, next, &ground, whole && x == begin, whole && next == end}, dice);
            x = next;
        }
    }
}

}  // namespace citysplat::synth
