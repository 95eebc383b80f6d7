#pragma once

#include "io/mesh/mesh_file.hpp"

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace citysplat::io {

/// Where something is in a file; made into words only when they are needed.
struct MeshPlace {
    std::string_view file, kind;  ///< kind: "line", "vertex", "byte", …
    std::uint64_t number;

    std::string text() const {
        return std::string(file) + ": " + std::string(kind) + " " + std::to_string(number);
    }
};

/// Puts a mesh together and keeps the promises of MeshFile. Messages begin with the place in the file.
class MeshBuilder {
  public:
    explicit MeshBuilder(std::string file) : file_(std::move(file)) {}

    std::size_t vertices() const { return mesh_.vertices.size(); }
    void vertex(Vec3d position, const MeshPlace& where);
    /// The material of that name; the same name is the same material.
    std::uint16_t material(const std::string& name, std::optional<double> reflectance,
                           const MeshPlace& where);
    /// A polygon of vertices that are there. Convex ones become a fan, others are cut ear by ear in the plane
    /// of their area. A polygon without area is left out and counted.
    void polygon(std::span<const std::uint32_t> corners, std::uint16_t material, const MeshPlace& where);
    void triangle(const std::uint32_t (&corners)[3], std::uint16_t material, const MeshPlace& where);
    void note(const std::string& text);

    /// Throws InputError when there is no face.
    MeshFile finish() &&;

  private:
    Vec3d area_of(std::span<const std::uint32_t> corners) const;
    void add(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint16_t material);
    void cut_ears(std::span<const std::uint32_t> corners, Vec3d area, std::uint16_t material,
                  const MeshPlace& where);

    std::string file_;
    MeshFile mesh_;
    std::unordered_map<std::string, std::uint16_t> by_name_;
    std::uint64_t flat_ = 0;  ///< faces without area
};

}  // namespace citysplat::io
