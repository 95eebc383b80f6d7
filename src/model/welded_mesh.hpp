#pragma once

#include "model/mesh_tile.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace citysplat {

/// Makes one mesh of tiles: vertices that are equal in the world are one. Numbers are given in the order in
/// which tiles and triangles name vertices first. The two faces of a thin thing may have vertices at one
/// place; they keep apart, because their normals differ.
class WeldedMesh {
  public:
    struct Vertex {
        LatticePoint at;
        MeshVertex facts;  ///< its coordinates are those in the tile that came first
    };

    void add(const MeshTile& tile);

    const std::vector<Vertex>& vertices() const { return vertices_; }
    const std::vector<MeshTriangle>& triangles() const { return triangles_; }

  private:
    struct Name {
        LatticePoint at;
        std::uint32_t normal;
        friend bool operator==(const Name&, const Name&) = default;
    };
    struct NameHash {
        std::size_t operator()(const Name& name) const;
    };
    std::vector<Vertex> vertices_;
    std::vector<MeshTriangle> triangles_;
    std::unordered_map<Name, std::uint32_t, NameHash> number_of_;
};

}  // namespace citysplat
