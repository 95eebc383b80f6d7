#include "trace/part_reference.hpp"

#include "trace/tile_frustum.hpp"

namespace citysplat::trace {

namespace {

/// Rays pass boxes by this much more than what is rounded in their own frame.
constexpr double kMargin_m = 2e-3;

/// Calls found(hit) for every hit of a ray on a part.
template <class Found>
void meet(const Part& part, const Ray& ray, const Found& found) {
    if (!part.exists(ray.time_s)) return;
    const ShapeView shape = static_cast<const ReferenceShape*>(part.shape)->shape();
    const PoseKey at = pose_at(part.motion, ray.time_s);
    const LocalRay local = local_ray(at, ray, starts_at_true_origin(part.facts, !shape.triangles.empty()));
    const Ray inside{vec_cast<double>(local.origin), local.direction, ray.t_min, ray.t_max, ray.time_s};
    if (entry_distance(inside, shape.box) < 0) return;
    const auto in_range = [&](float t) { return t > ray.t_min && t <= ray.t_max; };
    const auto met = [&](std::size_t i) {
        return MetPart{part.facts, at, shape.facts[i], static_cast<std::uint32_t>(i)};
    };
    float t;
    for (std::size_t i = 0; i < shape.discs.size(); ++i)
        if (meets(shape.discs[i], local.origin, local.direction, t) && in_range(t))
            found(describe(t, met(i), shape.discs[i], ray));
    const ShearedRay slanted = sheared(local.origin, local.direction);
    for (std::size_t i = 0; i < shape.triangles.size(); ++i)
        if (meets(shape.triangles[i], slanted, t) && in_range(t))
            found(describe(t, met(i), shape.triangles[i], ray));
}

}  // namespace

ShapeView ReferenceMesh::shape() const {
    return {{}, primitives_.triangles, primitives_.facts.data(), primitives_.box.widened(kMargin_m)};
}

void closest_on_parts(std::span<const Part> parts, std::span<const Ray> rays, std::span<Hit> hits) {
    for (const Part& part : parts)
        for (std::size_t i = 0; i < rays.size(); ++i)
            meet(part, rays[i], [&](const Hit& hit) {
                if (!hits[i].exists() || comes_before(hit, hits[i])) hits[i] = hit;
            });
}

void put_in_order(const Hit& hit, std::uint32_t depth, float reach_m, HitList& list) {
    std::uint32_t at = list.count;
    while (at > 0 && comes_before(hit, list.hits[at - 1])) --at;
    if (at < depth) {
        std::uint32_t last = list.count < depth ? list.count++ : depth - 1;
        for (; last > at; --last) list.hits[last] = list.hits[last - 1];
        list.hits[at] = hit;
    }
    while (list.count > 0 && list.hits[list.count - 1].t > list.hits[0].t + reach_m) --list.count;
}

void nearest_on_parts(std::span<const Part> parts, std::span<const Ray> rays, std::uint32_t depth,
                      float gap_m, std::span<HitList> lists) {
    const float reach_m = static_cast<float>(depth - 1) * gap_m;
    for (const Part& part : parts)
        for (std::size_t i = 0; i < rays.size(); ++i)
            meet(part, rays[i], [&](const Hit& hit) { put_in_order(hit, depth, reach_m, lists[i]); });
}

}  // namespace citysplat::trace
