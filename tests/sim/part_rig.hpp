#pragma once

#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "sim/traffic/motion.hpp"
#include "trace/tracer.hpp"

#include <cmath>
#include <cstring>
#include <deque>
#include <vector>

/// Meshes with known truth, and parts that own what they point to.
namespace citysplat::test {

/// The twelve triangles of a box around (0, 0, height/2).
inline TriangleMesh box_mesh(Vec3d size, std::uint16_t label = 10, float reflectance = 0.25f) {
    TriangleMesh mesh;
    for (int i = 0; i < 8; ++i)
        mesh.vertices.push_back({static_cast<float>((i & 1 ? 0.5 : -0.5) * size.x),
                                 static_cast<float>((i & 2 ? 0.5 : -0.5) * size.y),
                                 static_cast<float>(i & 4 ? size.z : 0)});
    mesh.triangles = {{0, 2, 1}, {1, 2, 3}, {4, 5, 6}, {5, 7, 6}, {0, 1, 4}, {1, 5, 4},
                      {2, 6, 3}, {3, 6, 7}, {0, 4, 2}, {2, 4, 6}, {1, 3, 5}, {3, 7, 5}};
    mesh.materials = {{"paint", label, reflectance}};
    return mesh;
}

/// A closed surface of triangles: a sphere with bumps, by latitude and longitude.
inline TriangleMesh bumpy_sphere(std::uint32_t rows, std::uint32_t columns, double radius_m,
                                 std::uint64_t key) {
    TriangleMesh mesh;
    const auto add = [&](double latitude, double longitude, std::uint64_t n) {
        const double r = radius_m * rng::uniform(key, n, 0.8, 1.0);
        mesh.vertices.push_back(vec_cast<float>(Vec3d{r * exact::cos(latitude) * exact::cos(longitude),
                                                      r * exact::cos(latitude) * exact::sin(longitude),
                                                      r * exact::sin(latitude)}));
    };
    add(-exact::kPi / 2, 0, 0);
    for (std::uint32_t i = 1; i < rows; ++i)
        for (std::uint32_t j = 0; j < columns; ++j)
            add(exact::kPi * (static_cast<double>(i) / rows - 0.5), 2 * exact::kPi * j / columns,
                1 + i * columns + j);
    add(exact::kPi / 2, 0, 1 + rows * columns);
    const auto at = [&](std::uint32_t i, std::uint32_t j) { return 1 + (i - 1) * columns + j % columns; };
    const auto top = static_cast<std::uint32_t>(mesh.vertices.size() - 1);
    for (std::uint32_t j = 0; j < columns; ++j) {
        mesh.triangles.push_back({0, at(1, j + 1), at(1, j)});
        mesh.triangles.push_back({top, at(rows - 1, j), at(rows - 1, j + 1)});
        for (std::uint32_t i = 1; i + 1 < rows; ++i) {
            mesh.triangles.push_back({at(i, j), at(i, j + 1), at(i + 1, j)});
            mesh.triangles.push_back({at(i + 1, j), at(i, j + 1), at(i + 1, j + 1)});
        }
    }
    mesh.materials = {{"skin", 30, 0.5f}};
    return mesh;
}

/// Parts with the keys and shapes that they point to.
class Parts {
  public:
    explicit Parts(const trace::Tracer& tracer) : tracer_(tracer) {}

    template <class Form>
    trace::TracerTilePtr shape(const Form& form) {
        shapes_.push_back(tracer_.load(form));
        return shapes_.back();
    }
    trace::Part& add(const trace::TracerTilePtr& shape, const Track& track, double reach_m,
                     const sim::Sweep& sweep) {
        return add(shape, sim::motion_during(track, {}, reach_m, sweep));
    }
    trace::Part& add(const trace::TracerTilePtr& shape, sim::MotionKeys motion) {
        keys_.push_back(std::move(motion));
        trace::Part part;
        part.shape = shape.get();
        part.motion = keys_.back().view();
        part.facts.id = trace::kFirstPart + static_cast<std::uint32_t>(parts_.size());
        part.facts.instance = static_cast<std::uint16_t>(parts_.size() + 1);
        parts_.push_back(part);
        return parts_.back();
    }
    trace::Part& add_standing(const trace::TracerTilePtr& shape, const Pose& pose) {
        return add(shape, {{sim::key_of(pose)}, {0.0f}});
    }
    std::vector<trace::Part>& all() { return parts_; }
    operator std::span<const trace::Part>() const { return parts_; }

  private:
    const trace::Tracer& tracer_;
    std::vector<trace::TracerTilePtr> shapes_;
    std::deque<sim::MotionKeys> keys_;
    std::vector<trace::Part> parts_;
};

inline Vec3d random_unit(std::uint64_t key, std::uint64_t i) {
    const double z = rng::uniform(key, 2 * i, -1, 1), a = rng::uniform(key, 2 * i + 1, 0, 2 * exact::kPi);
    const double r = std::sqrt(1 - z * z);
    return {r * exact::cos(a), r * exact::sin(a), z};
}

/// The hits of both questions.
struct PartHits {
    std::vector<trace::Hit> closest;
    std::vector<trace::HitList> nearest;

    explicit PartHits(std::size_t rays) : closest(rays), nearest(rays) {}
    std::size_t differences(const PartHits& other) const {
        std::size_t n = 0;
        for (std::size_t i = 0; i < closest.size(); ++i)
            n += std::memcmp(&closest[i], &other.closest[i], sizeof(trace::Hit)) != 0 ||
                 nearest[i].count != other.nearest[i].count ||
                 std::memcmp(nearest[i].hits, other.nearest[i].hits, nearest[i].count * sizeof(trace::Hit)) !=
                     0;
        return n;
    }
};

inline PartHits ask(const trace::Tracer& tracer, const trace::Scene& scene, std::span<const trace::Ray> rays,
                    std::size_t batch) {
    PartHits hits(rays.size());
    for (std::size_t i = 0; i < rays.size(); i += batch) {
        const std::size_t n = std::min(batch, rays.size() - i);
        tracer.closest(scene, rays.subspan(i, n), std::span(hits.closest).subspan(i, n));
        tracer.nearest(scene, rays.subspan(i, n), 5, 0.1f, std::span(hits.nearest).subspan(i, n));
    }
    return hits;
}

}  // namespace citysplat::test
