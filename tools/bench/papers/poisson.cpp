#include "bench/papers/poisson.hpp"

#include "bench/bench_files.hpp"
#include "bench/papers/point_set.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "io/mesh/mesh_file.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

namespace citysplat::bench {

namespace {

constexpr const char* kProgram = "pcl_poisson_reconstruction";
constexpr const char* kToPly = "pcl_vtk2ply";

bool is_installed(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

/// Arguments are names that we made, without spaces or quotes.
void run(const std::string& command) {
    if (std::system((command + " >/dev/null 2>&1").c_str()) != 0) throw IoError("\"" + command + "\" failed");
}

void write_pcd(const SplatTile& discs, const std::filesystem::path& path) {
    std::string text =
        "VERSION .7\nFIELDS x y z normal_x normal_y normal_z\nSIZE 4 4 4 4 4 4\nTYPE F F F F F F\n"
        "COUNT 1 1 1 1 1 1\nWIDTH " +
        std::to_string(discs.size()) + "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS " +
        std::to_string(discs.size()) + "\nDATA ascii\n";
    char line[160];
    for (std::size_t i = 0; i < discs.size(); ++i) {
        const Disc d = discs.disc(i);
        std::snprintf(line, sizeof line, "%.4f %.4f %.4f %.4f %.4f %.4f\n", static_cast<double>(d.centre.x),
                      static_cast<double>(d.centre.y), static_cast<double>(d.centre.z),
                      static_cast<double>(d.normal.x), static_cast<double>(d.normal.y),
                      static_cast<double>(d.normal.z));
        text += line;
    }
    FileWriter out(path);
    out.text(text);
    out.finish();
}

}  // namespace

std::optional<std::string> why_no_poisson() {
    for (const char* program : {kProgram, kToPly})
        if (!is_installed(program)) return std::string(program) + " is not installed (Debian: pcl-tools)";
    return std::nullopt;
}

PoissonMesh make_poisson(const SplatTile& discs, int depth, double trim_m) {
    const ScratchDirectory scratch;
    const std::string pcd = (scratch.path() / "points.pcd").string(),
                      vtk = (scratch.path() / "mesh.vtk").string(),
                      ply = (scratch.path() / "mesh.ply").string();
    write_pcd(discs, pcd);
    run(std::string(kProgram) + " " + pcd + " " + vtk + " -depth " + std::to_string(depth));
    run(std::string(kToPly) + " " + vtk + " " + ply);
    const io::MeshFile all = io::read_mesh(ply);
    std::vector<Vec3d> centres;
    for (std::size_t i = 0; i < discs.size(); ++i) centres.push_back(vec_cast<double>(discs.disc(i).centre));
    const PointSet points(std::move(centres));
    PoissonMesh result{{}, discs.frame().origin_m()};
    for (const Vec3d& v : all.vertices) result.mesh.vertices.push_back(vec_cast<float>(v));
    std::vector<PointSet::Near> near(result.mesh.vertices.size());
    for_each_chunk(near.size(), 4096, CancelToken(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) near[i] = points.nearest(all.vertices[i]);
    });
    std::map<std::uint16_t, std::uint16_t> material_of;
    for (const io::MeshFace& face : all.faces) {
        const auto& [a, b, c] = face.corners;
        if (std::max({near[a].distance, near[b].distance, near[c].distance}) > trim_m) continue;
        const std::uint16_t label = discs.label()[near[a].point];
        const auto [entry, is_new] =
            material_of.try_emplace(label, static_cast<std::uint16_t>(result.mesh.materials.size()));
        if (is_new) result.mesh.materials.push_back({.name = "class", .label = label});
        result.mesh.material_of.push_back(entry->second);
        result.mesh.triangles.push_back({a, b, c});
    }
    return result;
}

}  // namespace citysplat::bench
