#include "sim/traffic/object_shape.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace citysplat::sim {

namespace {

io::MeshFile make_box(const ObjectSize& size) {
    io::MeshFile mesh;
    for (int i = 0; i < 8; ++i)
        mesh.vertices.push_back({(i & 1 ? 0.5 : -0.5) * size.length_m, (i & 2 ? 0.5 : -0.5) * size.width_m,
                                 (i & 4 ? 1.0 : 0.0) * size.height_m});
    constexpr std::uint32_t kQuads[6][4]{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4},
                                         {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    for (const auto& q : kQuads) {
        mesh.faces.push_back({{q[0], q[1], q[2]}, 0});
        mesh.faces.push_back({{q[0], q[2], q[3]}, 0});
    }
    mesh.materials.push_back({"", std::nullopt});
    return mesh;
}

/// An icosahedron whose triangles are quartered four times: 5120 of them, within 0.1 % of the radius.
io::MeshFile make_sphere(double diameter_m) {
    const double golden = (1 + std::sqrt(5.0)) / 2;
    std::vector<Vec3d> v{{-1, golden, 0}, {1, golden, 0}, {-1, -golden, 0}, {1, -golden, 0},
                         {0, -1, golden}, {0, 1, golden}, {0, -1, -golden}, {0, 1, -golden},
                         {golden, 0, -1}, {golden, 0, 1}, {-golden, 0, -1}, {-golden, 0, 1}};
    std::vector<std::array<std::uint32_t, 3>> faces{
        {0, 11, 5},  {0, 5, 1},  {0, 1, 7},  {0, 7, 10}, {0, 10, 11}, {1, 5, 9}, {5, 11, 4},
        {11, 10, 2}, {10, 7, 6}, {7, 1, 8},  {3, 9, 4},  {3, 4, 2},   {3, 2, 6}, {3, 6, 8},
        {3, 8, 9},   {4, 9, 5},  {2, 4, 11}, {6, 2, 10}, {8, 6, 7},   {9, 8, 1}};
    for (Vec3d& p : v) p = (1 / length(p)) * p;
    for (int round = 0; round < 4; ++round) {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> middles;
        const auto middle = [&](std::uint32_t a, std::uint32_t b) {
            const auto [at, fresh] = middles.emplace(std::minmax(a, b), static_cast<std::uint32_t>(v.size()));
            if (fresh) {
                const Vec3d sum = v[std::min(a, b)] + v[std::max(a, b)];
                v.push_back((1 / length(sum)) * sum);
            }
            return at->second;
        };
        std::vector<std::array<std::uint32_t, 3>> finer;
        for (const auto& [a, b, c] : faces) {
            const std::uint32_t ab = middle(a, b), bc = middle(b, c), ca = middle(c, a);
            finer.insert(finer.end(), {{a, ab, ca}, {b, bc, ab}, {c, ca, bc}, {ab, bc, ca}});
        }
        faces = std::move(finer);
    }
    io::MeshFile mesh;
    for (const Vec3d p : v) mesh.vertices.push_back(diameter_m / 2 * (p + Vec3d{0, 0, 1}));
    for (const auto& [a, b, c] : faces) mesh.faces.push_back({{a, b, c}, 0});
    mesh.materials.push_back({"", std::nullopt});
    return mesh;
}

io::MeshFile triangles_of(const ObjectDescription& d) {
    if (d.form == ObjectDescription::Form::box) return make_box(d.size);
    if (d.form == ObjectDescription::Form::sphere) return make_sphere(d.size.length_m);
    return io::read_mesh(d.file, d.axes);
}

MeshMaterial look_of(const io::MeshFileMaterial& material, const ObjectDescription& d,
                     const ClassMap& classes) {
    MeshMaterial look;
    look.name = material.name;
    if (!d.class_name.empty())
        look.label = require_label(classes, d.class_name, "object \"" + d.name + "\"");
    else
        look.label = label_of(classes, material.name).value_or(0);
    look.reflectance = static_cast<float>(
        d.reflectance.value_or(std::min(1.0, material.reflectance.value_or(kUsualReflectance))));
    return look;
}

}  // namespace

std::optional<std::uint16_t> label_of(const ClassMap& classes, std::string_view name) {
    if (const auto number = parse_whole<std::uint16_t>(name)) return number;
    const std::string wanted = lower_case(name);
    if (wanted.empty()) return std::nullopt;
    for (const auto& [label, info] : classes.classes())
        if (lower_case(info.name) == wanted) return label;
    return std::nullopt;
}

std::uint16_t require_label(const ClassMap& classes, std::string_view name, const std::string& where) {
    if (const auto label = label_of(classes, name)) return *label;
    std::string names;
    for (const auto& [label, info] : classes.classes()) names += (names.empty() ? "" : ", ") + info.name;
    throw ConfigError(where + ": no class \"" + std::string(name) + "\" in the class map " + classes.name() +
                      (names.empty() ? "; give the number of the label" : "; there are " + names));
}

ObjectShape make_object(const ObjectDescription& d, const ClassMap& classes) {
    io::MeshFile file = triangles_of(d);
    Box3d box = kEmptyBox;
    for (const io::MeshFace& face : file.faces)
        for (const std::uint32_t corner : face.corners) box.grow(d.scale * file.vertices[corner]);
    // The floats count from the middle of the bottom face, on whole metres where the file's own origin stays.
    const Vec3d bottom{(box.min.x + box.max.x) / 2, (box.min.y + box.max.y) / 2, box.min.z};
    const bool keep = d.origin == ObjectDescription::Origin::file;
    const Vec3d centre =
        keep ? Vec3d{std::floor(bottom.x), std::floor(bottom.y), std::floor(bottom.z)} : bottom;
    ObjectShape object;
    object.notes = std::move(file.notes);
    for (std::string& note : object.notes) note = "object \"" + d.name + "\": " + note;
    TriangleMesh mesh;
    // Vertices that no face uses may be anywhere.
    constexpr std::uint32_t kUnused = UINT32_MAX;
    std::vector<std::uint32_t> number(file.vertices.size(), kUnused);
    for (const io::MeshFace& face : file.faces) {
        auto& triangle = mesh.triangles.emplace_back();
        for (std::size_t i = 0; i < 3; ++i) {
            const std::uint32_t corner = face.corners[i];
            if (number[corner] == kUnused) {
                number[corner] = static_cast<std::uint32_t>(mesh.vertices.size());
                mesh.vertices.push_back(vec_cast<float>(d.scale * file.vertices[corner] - centre));
            }
            triangle[i] = number[corner];
        }
        mesh.material_of.push_back(face.material);
    }
    for (const io::MeshFileMaterial& material : file.materials)
        mesh.materials.push_back(look_of(material, d, classes));
    if (!d.reflectance && d.form == ObjectDescription::Form::mesh)
        object.notes.push_back("object \"" + d.name +
                               "\": no reflectance is given; the brightness of its colours, or " +
                               format_number(kUsualReflectance) + " where it has none, is a default");
    mesh.check(d.file.empty() ? "object \"" + d.name + "\"" : d.file.string());
    object.shape.name = d.name;
    object.shape.form = std::move(mesh);
    if (keep) object.object_from_shape.translation = centre;
    object.size = {box.max.x - box.min.x, box.max.y - box.min.y, box.max.z - box.min.z};
    return object;
}

}  // namespace citysplat::sim
