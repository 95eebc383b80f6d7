#include "io/mesh/mesh_builder.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/lattice.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace {

/// Cutting ears takes up to the cube of the corners.
constexpr std::size_t kMostConcaveCorners = 512;

struct Vec2d {
    double x, y;
};

double turn(Vec2d a, Vec2d b, Vec2d c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

/// Inside or on the border of a triangle that turns left.
bool holds(Vec2d a, Vec2d b, Vec2d c, Vec2d p) {
    return turn(a, b, p) >= 0 && turn(b, c, p) >= 0 && turn(c, a, p) >= 0;
}

/// Along the axis in which the area is largest, so that the outline turns left.
Vec2d flattened(Vec3d v, Vec3d area) {
    const double x = std::fabs(area.x), y = std::fabs(area.y), z = std::fabs(area.z);
    if (z >= x && z >= y) return area.z > 0 ? Vec2d{v.x, v.y} : Vec2d{v.y, v.x};
    if (x >= y) return area.x > 0 ? Vec2d{v.y, v.z} : Vec2d{v.z, v.y};
    return area.y > 0 ? Vec2d{v.z, v.x} : Vec2d{v.x, v.z};
}

}  // namespace

void MeshBuilder::vertex(Vec3d position, const MeshPlace& where) {
    if (mesh_.vertices.size() == kMostVertices)
        throw InputError(where.text() + ": more than " + format_count(kMostVertices) + " vertices");
    for (const double v : {position.x, position.y, position.z})
        if (!(std::fabs(v) <= kMaxWorld_m))
            throw InputError(where.text() + ": the coordinate " + format_number(v) +
                             (std::isfinite(v) ? " is not on Earth; expected metres" : " is not finite"));
    mesh_.vertices.push_back(position);
}

std::uint16_t MeshBuilder::material(const std::string& name, std::optional<double> reflectance,
                                    const MeshPlace& where) {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    if (mesh_.materials.size() == kMostMaterials)
        throw InputError(where.text() + ": more than " + format_count(kMostMaterials) + " materials");
    const auto number = static_cast<std::uint16_t>(mesh_.materials.size());
    mesh_.materials.push_back({name, reflectance});
    by_name_.emplace(name, number);
    return number;
}

Vec3d MeshBuilder::area_of(std::span<const std::uint32_t> corners) const {
    Vec3d sum{0, 0, 0};
    const Vec3d first = mesh_.vertices[corners[0]];
    for (std::size_t i = 1; i + 1 < corners.size(); ++i)
        sum = sum + cross(mesh_.vertices[corners[i]] - first, mesh_.vertices[corners[i + 1]] - first);
    return sum;
}

void MeshBuilder::add(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint16_t material) {
    const std::uint32_t corners[3]{a, b, c};
    const Vec3d area = area_of(corners);
    if (!(dot(area, area) > 0)) {
        ++flat_;
        return;
    }
    mesh_.faces.push_back({{a, b, c}, material});
}

void MeshBuilder::triangle(const std::uint32_t (&corners)[3], std::uint16_t material,
                           const MeshPlace& where) {
    polygon(corners, material, where);
}

void MeshBuilder::polygon(std::span<const std::uint32_t> corners, std::uint16_t material,
                          const MeshPlace& where) {
    if (corners.size() < 3)
        throw InputError(where.text() + ": a face with " + std::to_string(corners.size()) +
                         " corners; expected 3 or more");
    for (const std::uint32_t corner : corners)
        if (corner >= mesh_.vertices.size())
            throw InputError(where.text() + ": vertex " + std::to_string(corner) + " (counted from 0) of " +
                             std::to_string(mesh_.vertices.size()));
    // Faces without area take time, too.
    if (mesh_.faces.size() + flat_ + corners.size() - 2 > kMostFaces)
        throw InputError(where.text() + ": more than " + format_count(kMostFaces) + " triangles");
    if (corners.size() == 3) return add(corners[0], corners[1], corners[2], material);
    const Vec3d area = area_of(corners);
    if (!(dot(area, area) > 0)) {
        ++flat_;
        return;
    }
    bool convex = true;
    const std::size_t n = corners.size();
    for (std::size_t i = 0; i < n && convex; ++i) {
        const Vec3d a = mesh_.vertices[corners[i]], b = mesh_.vertices[corners[(i + 1) % n]],
                    c = mesh_.vertices[corners[(i + 2) % n]];
        convex = dot(cross(b - a, c - b), area) >= 0;
    }
    if (!convex) return cut_ears(corners, area, material, where);
    for (std::size_t i = 1; i + 1 < n; ++i) add(corners[0], corners[i], corners[i + 1], material);
}

void MeshBuilder::cut_ears(std::span<const std::uint32_t> corners, Vec3d area, std::uint16_t material,
                           const MeshPlace& where) {
    if (corners.size() > kMostConcaveCorners)
        throw InputError(where.text() + ": a face with " + std::to_string(corners.size()) +
                         " corners that is not convex; triangulate it before");
    std::vector<std::uint32_t> left(corners.begin(), corners.end());
    const auto place = [&](std::size_t i) { return flattened(mesh_.vertices[left[i]], area); };
    while (left.size() > 3) {
        const std::size_t n = left.size();
        std::size_t ear = n;
        for (std::size_t i = 0; i < n && ear == n; ++i) {
            const std::size_t before = (i + n - 1) % n, after = (i + 1) % n;
            const Vec2d a = place(before), b = place(i), c = place(after);
            if (!(turn(a, b, c) > 0)) continue;
            bool empty = true;
            for (std::size_t k = 0; k < n && empty; ++k) {
                const bool own = left[k] == left[before] || left[k] == left[i] || left[k] == left[after];
                empty = own || !holds(a, b, c, place(k));
            }
            if (empty) ear = i;
        }
        // An outline that crosses itself may have none left: the rest becomes a fan.
        const std::size_t cut = ear == n ? 1 : ear;
        add(left[(cut + n - 1) % n], left[cut], left[(cut + 1) % n], material);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(cut));
    }
    add(left[0], left[1], left[2], material);
}

void MeshBuilder::note(const std::string& text) {
    auto& notes = mesh_.notes;
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

MeshFile MeshBuilder::finish() && {
    if (mesh_.faces.empty())
        throw InputError(file_ + ": no face with an area" +
                         (flat_ ? " (" + format_count(flat_) + " without)" : std::string()));
    if (flat_) note(format_count(flat_) + " faces have no area and are left out");
    return std::move(mesh_);
}

}  // namespace citysplat::io
