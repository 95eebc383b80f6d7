#include "io/mesh/mesh_file.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/mesh/mesh_formats.hpp"

namespace citysplat::io {

namespace {

std::string read_whole(const std::filesystem::path& path) {
    const File file(path, File::Mode::read);
    if (file.size() > kMostMeshBytes)
        throw InputError(path.string() + ": " + format_bytes(file.size()) + "; a mesh may have " +
                         format_bytes(kMostMeshBytes));
    std::string bytes(static_cast<std::size_t>(file.size()), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
    return bytes;
}

MeshFile read_obj(const std::filesystem::path& path) {
    const auto open = [&](const std::string& name) -> std::optional<std::string> {
        const std::filesystem::path library = path.parent_path() / name;
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(library, ignored)) return std::nullopt;
        return read_whole(library);
    };
    return parse_obj(read_whole(path), path.string(), open);
}

}  // namespace

MeshFile read_mesh(const std::filesystem::path& path, MeshAxes axes) {
    const std::string kind = lower_case(path.extension().string());
    MeshFile mesh;
    if (kind == ".glb")
        return parse_glb(read_whole(path), path.string());
    else if (kind == ".obj")
        mesh = read_obj(path);
    else if (kind == ".ply")
        mesh = read_ply_mesh(path);
    else
        throw InputError(path.string() + ": a mesh is a file .glb, .obj or .ply" +
                         (kind == ".gltf" ? "; export the model as one .glb" : ""));
    if (axes == MeshAxes::y_up)
        for (Vec3d& v : mesh.vertices) v = from_y_up(v);
    return mesh;
}

}  // namespace citysplat::io
