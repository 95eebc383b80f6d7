#pragma once

#include "io/mesh/mesh_file.hpp"
#include "model/class_map.hpp"
#include "sim/traffic/traffic.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::sim {

/// An object as a scenario describes it.
struct ObjectDescription {
    enum class Form { mesh, box, sphere };
    /// What becomes the origin: the middle of the bottom face of the mesh's box, or the origin of the file.
    enum class Origin { bottom, file };
    static constexpr Words<Origin, 2> kOrigins{{"bottom", "file"}};

    std::string name;
    Form form = Form::mesh;
    std::filesystem::path file{};         ///< of a mesh
    ObjectSize size{};                    ///< of a box; the length is the diameter of a sphere
    std::string class_name{};             ///< name or number; empty: materials named like a class have it
    std::optional<double> reflectance{};  ///< nothing: the material's, else kUsualReflectance
    double scale = 1;
    io::MeshAxes axes = io::MeshAxes::z_up;
    Origin origin = Origin::bottom;
};

inline constexpr double kUsualReflectance = 0.3;

/// The label of a class: a number, or a name of the map, whatever its case. Nothing when there is no such
/// name.
std::optional<std::uint16_t> label_of(const ClassMap& classes, std::string_view name);
/// Throws ConfigError that begins with `where` and lists the names there are.
std::uint16_t require_label(const ClassMap& classes, std::string_view name, const std::string& where);

/// What rays meet, in a frame that floats can hold, and how that frame sits in the object's.
struct ObjectShape {
    Shape shape;
    Pose object_from_shape;
    ObjectSize size;
    std::vector<std::string> notes;
};

/// Reads or makes the triangles. Throws InputError naming the file, ConfigError naming an unknown class.
ObjectShape make_object(const ObjectDescription& description, const ClassMap& classes);

}  // namespace citysplat::sim
