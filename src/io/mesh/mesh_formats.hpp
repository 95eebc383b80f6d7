#pragma once

#include "io/mesh/mesh_file.hpp"

#include <functional>
#include <string_view>

/// The single formats of meshes; read_mesh() picks one.
namespace citysplat::io {

/// What a library of materials holds, or nothing when it is not there.
using OpenLibrary = std::function<std::optional<std::string>(const std::string& name)>;

MeshFile parse_glb(std::string_view bytes, const std::string& name);
MeshFile parse_obj(std::string_view text, const std::string& name, const OpenLibrary& open);
MeshFile read_ply_mesh(const std::filesystem::path& path);

/// y up and z forward, as glTF has it, in our axes. A rotation: left stays left.
constexpr Vec3d from_y_up(Vec3d v) { return {v.z, v.x, v.y}; }

}  // namespace citysplat::io
