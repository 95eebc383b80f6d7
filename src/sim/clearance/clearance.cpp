#include "sim/clearance/clearance.hpp"

#include "core/error.hpp"
#include "model/disc_bounds_hd.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::sim {

namespace {

Vec3f low(Vec3f a, Vec3f b) { return {std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)}; }
Vec3f high(Vec3f a, Vec3f b) { return {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}; }

BoxF around(const Disc& d) {
    const Vec3f reach = disc_reach(d.normal, d.radius);
    return {d.centre - reach, d.centre + reach};
}
BoxF around(Vec3f a, Vec3f b, Vec3f c) { return {low(low(a, b), c), high(high(a, b), c)}; }

/// Around a turned box, with some air for rounding: floats hold a kilometre to 0.06 mm.
Box3d around(const Box3d& box, const Pose& to) {
    Box3d all = kEmptyBox;
    for (int i = 0; i < 8; ++i)
        all.grow(to.apply(
            {i & 1 ? box.max.x : box.min.x, i & 2 ? box.max.y : box.min.y, i & 4 ? box.max.z : box.min.z}));
    return all.widened(0.0005);
}
BoxF single(const Box3d& b) { return {vec_cast<float>(b.min), vec_cast<float>(b.max)}; }

bool is_near(const Box3d& a, const Box3d& b, double reach_m) {
    return a.min.x - reach_m <= b.max.x && b.min.x - reach_m <= a.max.x && a.min.y - reach_m <= b.max.y &&
           b.min.y - reach_m <= a.max.y && a.min.z - reach_m <= b.max.z && b.min.z - reach_m <= a.max.z;
}

}  // namespace

ClearanceBody::ClearanceBody(const TriangleMesh& mesh, const Pose& body_from_shape) : box_(kEmptyBox) {
    std::vector<BoxF> boxes;
    for (const auto& t : mesh.triangles) {
        const auto corner = [&](std::size_t i) {
            return body_from_shape.apply(vec_cast<double>(mesh.vertices[t[i]]));
        };
        triangles_.push_back({corner(0), corner(1), corner(2)});
        const convex::Triangle& now = triangles_.back();
        for (const Vec3d v : {now.a, now.b, now.c}) box_.grow(v);
        boxes.push_back(around(vec_cast<float>(now.a), vec_cast<float>(now.b), vec_cast<float>(now.c)));
    }
    tree_ = BoxTree(boxes);
}

/// The discs of a tile or the primitives of a shape, in its own frame.
struct ClearanceProbe::Shapes {
    SplatTile discs;
    const TriangleMesh* mesh = nullptr;
    BoxTree tree;
    Box3d box = kEmptyBox;
    std::list<std::uint32_t>::iterator place{};

    explicit Shapes(SplatTile tile) : discs(std::move(tile)) { index_discs(discs); }
    explicit Shapes(const TriangleMesh& triangles) : mesh(&triangles) {
        std::vector<BoxF> boxes;
        const auto& v = triangles.vertices;
        for (const auto& t : triangles.triangles) boxes.push_back(around(v[t[0]], v[t[1]], v[t[2]]));
        index(boxes);
    }
    /// Discs that somebody else keeps.
    explicit Shapes(const SplatTile* others) : borrowed(others) { index_discs(*others); }

    const SplatTile& tile() const { return borrowed ? *borrowed : discs; }
    std::uint64_t bytes() const { return tree.bytes() + SplatTile::body_bytes(discs.size()); }

    const SplatTile* borrowed = nullptr;

  private:
    void index_discs(const SplatTile& t) {
        std::vector<BoxF> boxes;
        for (std::size_t i = 0; i < t.size(); ++i) boxes.push_back(around(t.disc(i)));
        index(boxes);
    }
    void index(const std::vector<BoxF>& boxes) {
        for (const BoxF& b : boxes) box.grow(vec_cast<double>(b.min)), box.grow(vec_cast<double>(b.max));
        tree = BoxTree(boxes);
    }
};

struct ClearanceProbe::Query {
    const ClearanceBody& body;
    const Pose& world_from_body;
    Clearance best;
};

namespace {

/// Distance of a body and a set in the body's frame, if it is below the limit.
template <class Set>
double distance_of(const ClearanceBody& body, const Set& set, const BoxF& box_of_set, double limit_m) {
    if (body.is_box()) return convex::distance(convex::Cuboid{body.box()}, set, limit_m);
    double best = limit_m;
    float reach = static_cast<float>(best);
    body.tree().near(box_of_set, reach, [&](std::uint32_t i) {
        const double d = convex::distance(body.triangles()[i], set, best);
        if (d < best) best = d, reach = std::nextafter(static_cast<float>(d), 1e30f);
    });
    return best;
}

}  // namespace

ClearanceProbe::ClearanceProbe(const TileSource& city, const Traffic* traffic,
                               const ClearanceOptions& options)
    : city_(city), traffic_(traffic), options_(options) {
    if (has_triangles(city.kind()))
        throw UsageError(
            "clearances are measured to splats, and this city is taken as a mesh; "
            "citysplat build --product splats,mesh makes splats beside it");
    if (traffic) shapes_.resize(traffic->shapes().size());
}
ClearanceProbe::~ClearanceProbe() = default;

const ClearanceProbe::Shapes& ClearanceProbe::tile(std::uint32_t number) {
    const auto found = tiles_.find(number);
    if (found != tiles_.end()) {
        recent_.splice(recent_.begin(), recent_, found->second->place);
        return *found->second;
    }
    auto shapes = std::make_unique<Shapes>(city_.load(number));
    bytes_ += shapes->bytes();
    while (bytes_ > options_.budget_bytes && !recent_.empty()) {
        const std::uint32_t oldest = recent_.back();
        bytes_ -= tiles_.at(oldest)->bytes();
        tiles_.erase(oldest);
        recent_.pop_back();
    }
    recent_.push_front(number);
    shapes->place = recent_.begin();
    return *(tiles_[number] = std::move(shapes));
}

const ClearanceProbe::Shapes& ClearanceProbe::shape(std::uint32_t number) {
    auto& shapes = shapes_[number];
    if (!shapes) {
        const auto& form = traffic_->shapes()[number].form;
        if (const auto* mesh = std::get_if<TriangleMesh>(&form))
            shapes = std::make_unique<Shapes>(*mesh);
        else
            shapes = std::make_unique<Shapes>(&std::get<SplatTile>(form));
    }
    return *shapes;
}

void ClearanceProbe::search(const Shapes& shapes, const Pose& body_from_shapes,
                            std::optional<std::uint32_t> actor, Query& query) const {
    const ClearanceBody& body = query.body;
    const BoxF here = single(around(body.box(), inverse(body_from_shapes)));
    float reach = static_cast<float>(query.best.distance_m);
    const auto take = [&](double d, bool touches, Vec3d place, std::uint16_t label) {
        if (!(d < query.best.distance_m) && !(touches && !query.best.touches)) return;
        query.best = {touches ? 0 : d, touches, true, actor, query.world_from_body.apply(place), label};
        reach = std::nextafter(static_cast<float>(query.best.distance_m), 1e30f);
    };
    shapes.tree.near(here, reach, [&](std::uint32_t i) {
        const double limit = query.best.distance_m;
        if (shapes.mesh) {
            const auto& t = shapes.mesh->triangles[i];
            const auto corner = [&](std::size_t k) {
                return body_from_shapes.apply(vec_cast<double>(shapes.mesh->vertices[t[k]]));
            };
            const convex::Triangle set{corner(0), corner(1), corner(2)};
            const double d = distance_of(
                body, set, around(vec_cast<float>(set.a), vec_cast<float>(set.b), vec_cast<float>(set.c)),
                limit);
            return take(d, d <= convex::kTolerance_m, set.middle(), shapes.mesh->material(i).label);
        }
        const Disc disc = shapes.tile().disc(i);
        const convex::FlatDisc set{body_from_shapes.apply(vec_cast<double>(disc.centre)),
                                   rotate(body_from_shapes.rotation, vec_cast<double>(disc.normal)),
                                   static_cast<double>(disc.radius)};
        const std::uint16_t label = shapes.tile().label()[i];
        if (body.is_box() && convex::meets(set, body.box())) return take(0, true, set.centre, label);
        const Disc turned{vec_cast<float>(set.centre), disc.radius, vec_cast<float>(set.normal)};
        const double d = distance_of(body, set, around(turned), limit);
        take(d, !body.is_box() && d <= convex::kTolerance_m, set.centre, label);
    });
}

Clearance ClearanceProbe::at(const ClearanceBody& body, const Pose& world_from_body, double time_s,
                             std::uint32_t vehicle) {
    Query query{body, world_from_body, {options_.limit_m}};
    const Box3d here = around(body.box(), world_from_body);
    const Pose body_from_world = inverse(world_from_body);
    const auto entries = city_.tiles();
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
        if (!is_near(here, {entries[i].min, entries[i].max}, query.best.distance_m)) continue;
        const Shapes& shapes = tile(i);
        // The frame of a tile is not turned.
        search(shapes, {body_from_world.apply(shapes.discs.frame().origin_m()), body_from_world.rotation},
               std::nullopt, query);
    }
    if (!traffic_) return query.best;
    const auto actors = traffic_->actors();
    for (std::uint32_t i = 0; i < actors.size(); ++i) {
        const Actor& actor = actors[i];
        if ((actor.vehicle != kNoVehicle && actor.vehicle == vehicle) || !actor.track.exists(time_s))
            continue;
        const Shapes& shapes = shape(actor.shape);
        const Pose world_from_shape = actor.track.pose_at(time_s) * actor.object_from_shape;
        if (!is_near(here, around(shapes.box, world_from_shape), query.best.distance_m)) continue;
        search(shapes, body_from_world * world_from_shape, i, query);
    }
    return query.best;
}

ClearanceReport clearance_along(ClearanceProbe& probe, const ClearanceBody& body, const ClearanceWay& way,
                                const CancelToken& cancel) {
    ClearanceReport report;
    const double from_s = std::max(way.from_s, way.trajectory.begin_s());
    const double to_s = std::min(way.to_s, way.trajectory.end_s());
    bool touched = false;
    for (std::uint64_t i = 0;; ++i) {
        const double time_s = from_s + static_cast<double>(i) * way.step_s;
        if (time_s > to_s) break;
        cancel.check();
        const Clearance now = probe.at(body, *way.trajectory.at(time_s), time_s, way.vehicle);
        if (report.poses++ == 0 || now.distance_m < report.nearest.distance_m ||
            (now.touches && !report.nearest.touches))
            report.nearest = now, report.nearest_s = time_s;
        if (now.touches) {
            ++report.touching;
            if (touched)
                report.touched_s.back().second = time_s;
            else
                report.touched_s.emplace_back(time_s, time_s);
        }
        touched = now.touches;
    }
    return report;
}

}  // namespace citysplat::sim
