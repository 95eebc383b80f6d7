#pragma once

#include "core/math/vec_hd.hpp"
#include "core/words.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Files of triangles: GLB, OBJ with MTL, PLY with faces. docs/scenarios.md says what is read of each.
namespace citysplat::io {

struct MeshFileMaterial {
    std::string name;
    /// Luminance of the colour (baseColorFactor, Kd). A colour says little about the wavelength of a laser:
    /// a default for those who know nothing better.
    std::optional<double> reflectance{};
};

struct MeshFace {
    std::uint32_t corners[3];
    std::uint16_t material;
};

/// A mesh as its file has it, in our axes: x forward, y left, z up, metres. Every corner is a vertex of the
/// mesh, every vertex is finite, every face has an area and a material of the list.
struct MeshFile {
    std::vector<Vec3d> vertices;
    std::vector<MeshFace> faces;
    std::vector<MeshFileMaterial> materials;
    std::vector<std::string> notes;  ///< what was left out or assumed, for people
};

/// Larger files are refused: no object needs them, and a damaged number must not eat the memory.
inline constexpr std::uint64_t kMostMeshBytes = std::uint64_t{2} << 30;
inline constexpr std::size_t kMostVertices = 20'000'000, kMostFaces = 20'000'000;
inline constexpr std::size_t kMostMaterials = 10'000;

/// In which directions a file's coordinates count. GLB fixes them itself: y up, z forward.
enum class MeshAxes { z_up, y_up };  ///< x forward and z up, or z forward and y up
inline constexpr Words<MeshAxes, 2> kMeshAxes{{"z-up", "y-up"}};

/// By the end of the name: .glb, .obj, .ply. Throws InputError naming file and record or byte.
MeshFile read_mesh(const std::filesystem::path& path, MeshAxes axes = MeshAxes::z_up);

}  // namespace citysplat::io
