#include "bench/papers/poisson.hpp"

#include "bench/bench_files.hpp"
#include "bench/papers/point_set.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sys/resource.h>
#include <sys/wait.h>
#include <vector>

namespace citysplat::bench {

namespace {

constexpr int kTimedOut = 124, kNotFound = 127;  // of timeout(1)

/// Metres from the middle of the tile, because the program writes five digits.
std::vector<Vec3d> centres_of(const SplatTile& discs, Vec3d& middle_m) {
    std::vector<Vec3d> centres;
    Box3d box = kEmptyBox;
    for (std::size_t i = 0; i < discs.size(); ++i) {
        centres.push_back(discs.frame().origin_m() + Vec3d{to_metres(unpack_position(discs.x()[i])),
                                                           to_metres(unpack_position(discs.y()[i])),
                                                           to_metres(unpack_position(discs.z()[i]))});
        box.grow(centres.back());
    }
    middle_m = (box.min + box.max) * 0.5;
    middle_m = {std::floor(middle_m.x), std::floor(middle_m.y), std::floor(middle_m.z)};
    for (Vec3d& centre : centres) centre = centre - middle_m;
    return centres;
}

void write_pcd(const std::filesystem::path& path, const std::vector<Vec3d>& centres, const SplatTile& discs) {
    std::ofstream out(path, std::ios::binary);
    out << "VERSION 0.7\nFIELDS x y z normal_x normal_y normal_z\nSIZE 4 4 4 4 4 4\nTYPE F F F F F F\n"
        << "COUNT 1 1 1 1 1 1\nWIDTH " << centres.size() << "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS "
        << centres.size() << "\nDATA binary\n";
    for (std::size_t i = 0; i < centres.size(); ++i) {
        const Vec3f row[2]{vec_cast<float>(centres[i]), unpack_normal(discs.normal()[i])};
        out.write(reinterpret_cast<const char*>(row), sizeof row);
    }
    if (!out.flush()) throw IoError("cannot write " + path.string());
}

/// The points and polygons of a legacy VTK file in ASCII.
void read_vtk(const std::filesystem::path& path, TriangleMesh& mesh) {
    std::ifstream in(path);
    std::string word;
    while (in >> word) {
        std::size_t count = 0, numbers = 0;
        if (word == "POINTS" && in >> count >> word) {
            mesh.vertices.resize(count);
            for (Vec3f& v : mesh.vertices) in >> v.x >> v.y >> v.z;
        } else if (word == "POLYGONS" && in >> count >> numbers) {
            mesh.triangles.resize(count);
            for (auto& [a, b, c] : mesh.triangles) in >> numbers >> a >> b >> c;
        }
    }
}

/// Gives each triangle the class of the nearest disc and leaves out those that have none near.
void trim(TriangleMesh& mesh, const std::vector<Vec3d>& centres, const SplatTile& discs, double farthest_m) {
    const PointSet near(centres);
    std::map<std::uint16_t, std::uint16_t> material_of;
    std::vector<std::array<std::uint32_t, 3>> kept;
    for (const auto& triangle : mesh.triangles) {
        const auto corner = [&](std::size_t i) { return vec_cast<double>(mesh.vertices.at(triangle[i])); };
        const auto [disc, distance] = near.nearest((corner(0) + corner(1) + corner(2)) * (1.0 / 3));
        if (distance > farthest_m) continue;
        const std::uint16_t label = discs.label()[disc];
        const auto [entry, is_new] =
            material_of.try_emplace(label, static_cast<std::uint16_t>(mesh.materials.size()));
        if (is_new) mesh.materials.push_back({.name = "class", .label = label});
        mesh.material_of.push_back(entry->second);
        kept.push_back(triangle);
    }
    mesh.triangles = std::move(kept);
}

double children_cpu_s() {
    rusage use{};
    ::getrusage(RUSAGE_CHILDREN, &use);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// Why it failed; empty when it did not.
std::string run(const PoissonOptions& options, const std::string& pcd, const std::string& vtk) {
    const std::string command = "timeout " + std::to_string(options.most_s) + " " + options.program + " " +
                                pcd + " " + vtk + " -depth " + std::to_string(options.depth) + " >&2";
    const int status = std::system(command.c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == kNotFound) return options.program + " (Debian: pcl-tools) is not installed";
    if (code == kTimedOut)
        return options.program + " at depth " + std::to_string(options.depth) + " took more than " +
               std::to_string(options.most_s) + " s";
    if (code != 0) return options.program + " failed";
    return {};
}

}  // namespace

PoissonMesh reconstruct(const SplatTile& discs, const PoissonOptions& options) {
    PoissonMesh made;
    const std::vector<Vec3d> centres = centres_of(discs, made.origin_m);
    const ScratchDirectory scratch;
    const auto pcd = scratch.path() / "points.pcd", vtk = scratch.path() / "mesh.vtk";
    write_pcd(pcd, centres, discs);
    const double before_s = children_cpu_s();
    made.missing = run(options, pcd, vtk);
    made.cpu_s = children_cpu_s() - before_s;
    if (!made.missing.empty()) return made;
    read_vtk(vtk, made.mesh);
    trim(made.mesh, centres, discs, options.farthest_m);
    if (made.mesh.triangles.empty()) made.missing = options.program + " made no triangle";
    return made;
}

}  // namespace citysplat::bench
