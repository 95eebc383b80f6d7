#include "model/region/region.hpp"

#include "core/number_range.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat {

namespace {

constexpr auto kFar = static_cast<std::int64_t>(kMaxWorld_m) * kLatticePerMetre;
constexpr LatticeBox kWorld{-kFar, -kFar, kFar + 1, kFar + 1};

LatticeBox common(const LatticeBox& a, const LatticeBox& b) {
    return {std::max(a.min_x, b.min_x), std::max(a.min_y, b.min_y), std::min(a.max_x, b.max_x),
            std::min(a.max_y, b.max_y)};
}

LatticeBox around(const LatticeBox& a, const LatticeBox& b) {
    return {std::min(a.min_x, b.min_x), std::min(a.min_y, b.min_y), std::max(a.max_x, b.max_x),
            std::max(a.max_y, b.max_y)};
}

bool within(const LatticeBox& inner, const LatticeBox& outer) {
    return inner.min_x >= outer.min_x && inner.min_y >= outer.min_y && inner.max_x <= outer.max_x &&
           inner.max_y <= outer.max_y;
}

/// Twice the signed area of the triangle a, b, c.
double turn(const RingCorner& a, const RingCorner& b, const RingCorner& c) {
    return (b.x_m - a.x_m) * (c.y_m - a.y_m) - (b.y_m - a.y_m) * (c.x_m - a.x_m);
}

/// Do two segments cross, or lie on each other for a while?
bool cross(const RingCorner& a, const RingCorner& b, const RingCorner& c, const RingCorner& d) {
    const double ab_c = turn(a, b, c), ab_d = turn(a, b, d), cd_a = turn(c, d, a), cd_b = turn(c, d, b);
    if (ab_c == 0 && ab_d == 0) {
        const auto overlap = [](double p, double q, double r, double s) {
            return std::min(std::max(p, q), std::max(r, s)) > std::max(std::min(p, q), std::min(r, s));
        };
        return overlap(a.x_m, b.x_m, c.x_m, d.x_m) || overlap(a.y_m, b.y_m, c.y_m, d.y_m);
    }
    return ((ab_c > 0 && ab_d < 0) || (ab_c < 0 && ab_d > 0)) &&
           ((cd_a > 0 && cd_b < 0) || (cd_a < 0 && cd_b > 0));
}

/// Edges in the order of their left ends, so that each meets only those that begin before it ends.
bool crosses_itself(const Ring& ring) {
    struct Segment {
        RingCorner a, b;
        double left, right;
    };
    std::vector<Segment> segments;
    for (std::size_t i = 0; i < ring.size(); ++i) {
        const RingCorner &a = ring[i], &b = ring[(i + 1) % ring.size()];
        segments.push_back({a, b, std::min(a.x_m, b.x_m), std::max(a.x_m, b.x_m)});
    }
    std::sort(segments.begin(), segments.end(),
              [](const Segment& s, const Segment& t) { return s.left < t.left; });
    for (std::size_t i = 0; i < segments.size(); ++i)
        for (std::size_t j = i + 1; j < segments.size() && segments[j].left <= segments[i].right; ++j)
            if (cross(segments[i].a, segments[i].b, segments[j].a, segments[j].b)) return true;
    return false;
}

}  // namespace

std::optional<std::string> why_no_ring(const Ring& ring) {
    if (ring.size() < 3) return "a ring needs three corners";
    double area = 0;
    for (std::size_t i = 0; i < ring.size(); ++i) {
        const RingCorner &a = ring[i], &b = ring[(i + 1) % ring.size()];
        if (!ranges::kPosition_m.contains(a.x_m) || !ranges::kPosition_m.contains(a.y_m))
            return "a corner is not a number " + ranges::kPosition_m.text();
        area += (a.x_m - ring[0].x_m) * (b.y_m - ring[0].y_m) - (b.x_m - ring[0].x_m) * (a.y_m - ring[0].y_m);
    }
    if (area == 0) return "a ring has no area";
    if (crosses_itself(ring)) return "a ring crosses itself";
    return std::nullopt;
}

bool Region::Shape::contains(std::int64_t x, std::int64_t y) const {
    const auto px = static_cast<double>(x), py = static_cast<double>(y);
    bool inside = false;
    for (const Edge& e : edges) {
        if (!(e.low_y <= py && py < e.high_y)) continue;
        if ((px - e.low_x) * (e.high_y - e.low_y) < (e.high_x - e.low_x) * (py - e.low_y)) inside = !inside;
    }
    return inside;
}

Region::Share Region::Shape::share_of(const LatticeBox& box) const {
    if (!bounds.intersects(box)) return Share::none;
    const auto lies_beside = [&](const Edge& e) {
        return std::max(e.low_x, e.high_x) < static_cast<double>(box.min_x) ||
               std::min(e.low_x, e.high_x) > static_cast<double>(box.max_x) ||
               e.high_y < static_cast<double>(box.min_y) || e.low_y > static_cast<double>(box.max_y);
    };
    // Without an edge in the box all of it is where its corner is.
    if (!std::all_of(edges.begin(), edges.end(), lies_beside)) return Share::some;
    return contains(box.min_x, box.min_y) ? Share::all : Share::none;
}

void Region::keep_any(const std::vector<Polygon>& polygons) {
    const auto steps = [](double metres) { return metres * static_cast<double>(kLatticePerMetre); };
    auto& shapes = shapes_.emplace_back();
    for (const Polygon& polygon : polygons) {
        Shape& shape = shapes.emplace_back(Shape{{}, {kFar, kFar, -kFar, -kFar}});
        for (const Ring& ring : polygon)
            for (std::size_t i = 0; i < ring.size(); ++i) {
                const RingCorner *low = &ring[i], *high = &ring[(i + 1) % ring.size()];
                const std::int64_t x = to_lattice(low->x_m), y = to_lattice(low->y_m);
                shape.bounds = around(shape.bounds, {x - 1, y - 1, x + 2, y + 2});
                if (low->y_m > high->y_m) std::swap(low, high);
                shape.edges.push_back({steps(low->x_m), steps(low->y_m), steps(high->x_m), steps(high->y_m)});
            }
    }
}

bool Region::contains(std::int64_t x, std::int64_t y) const {
    const auto one_has_it = [&](const auto& any) {
        return std::any_of(any.begin(), any.end(), [&](const auto& one) { return one.contains(x, y); });
    };
    return std::all_of(boxes_.begin(), boxes_.end(), one_has_it) &&
           std::all_of(shapes_.begin(), shapes_.end(), one_has_it);
}

Region::Share Region::share_of(const LatticeBox& box) const {
    Share all = Share::all;
    for (const auto& any : boxes_) {
        Share best = Share::none;
        for (const LatticeBox& b : any)
            best = std::max(best, within(box, b)      ? Share::all
                                  : b.intersects(box) ? Share::some
                                                      : Share::none);
        all = std::min(all, best);
    }
    for (const auto& any : shapes_) {
        Share best = Share::none;
        for (const Shape& shape : any) best = std::max(best, shape.share_of(box));
        all = std::min(all, best);
    }
    return all;
}

Region Region::near(const LatticeBox& box) const {
    Region region = *this;
    for (auto& any : region.shapes_)
        for (Shape& shape : any)
            std::erase_if(shape.edges, [&](const Edge& e) {
                return e.high_y < static_cast<double>(box.min_y) || e.low_y > static_cast<double>(box.max_y);
            });
    return region;
}

LatticeBox Region::bounds() const {
    LatticeBox all = kWorld;
    for (const auto& any : boxes_) {
        LatticeBox union_of = any.empty() ? LatticeBox{} : any[0];
        for (const LatticeBox& b : any) union_of = around(union_of, b);
        all = common(all, union_of);
    }
    for (const auto& any : shapes_) {
        LatticeBox union_of = any.empty() ? LatticeBox{} : any[0].bounds;
        for (const Shape& shape : any) union_of = around(union_of, shape.bounds);
        all = common(all, union_of);
    }
    return all;
}

}  // namespace citysplat
