#include "core/file.hpp"
#include "datasets/synth/actors.hpp"
#include "datasets/synth/drive.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace citysplat::synth {

namespace {

/// Triangles of a shape.
struct ActorMesh {
    std::vector<Vec3d> vertices;
    struct Face {
        std::size_t corners[3];
        std::uint8_t reflectance_percent;
    };
    std::vector<Face> faces;
};

constexpr int kSides = 48;
constexpr double kReach_m = 60, kStep_s = 0.05, kSharp_s = 1e-6;

class Mesher {
  public:
    explicit Mesher(ActorMesh& mesh) : mesh_(mesh) {}

    std::size_t corner(Vec3d v) {
        mesh_.vertices.push_back(v);
        return mesh_.vertices.size() - 1;
    }
    void triangle(std::size_t a, std::size_t b, std::size_t c, const Surface& surface) {
        mesh_.faces.push_back({{a, b, c}, surface.reflectance_percent});
    }
    void quad(std::size_t a, std::size_t b, std::size_t c, std::size_t d, const Surface& surface) {
        triangle(a, b, c, surface);
        triangle(a, c, d, surface);
    }

    void add(const Flat& f) {
        const std::size_t a = corner(f.corner), b = corner(f.corner + f.edge_u),
                          d = corner(f.corner + f.edge_v);
        if (f.triangular) return triangle(a, b, d, f.surface);
        quad(a, b, corner(f.corner + f.edge_u + f.edge_v), d, f.surface);
    }
    void add(const Box& box) {
        std::size_t c[8];
        for (int i = 0; i < 8; ++i) {
            const Vec3d h{(i & 1 ? 1 : -1) * box.half.x, (i & 2 ? 1 : -1) * box.half.y,
                          (i & 4 ? 1 : -1) * box.half.z};
            c[i] = corner(box.centre + Vec3d{box.cos_yaw * h.x - box.sin_yaw * h.y,
                                             box.sin_yaw * h.x + box.cos_yaw * h.y, h.z});
        }
        constexpr int kQuads[6][4]{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4},
                                   {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
        for (const auto& q : kQuads) quad(c[q[0]], c[q[1]], c[q[2]], c[q[3]], box.surface);
    }
    /// Rings one above the other along an axis; a ring of radius 0 is a point.
    struct Ring {
        Vec3d centre;
        double radius;
    };
    void rings(const std::vector<Ring>& rings, Vec3d axis, const Surface& surface) {
        Vec3d u = cross(axis, std::fabs(axis.x) < 0.7 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0});
        u = (1 / length(u)) * u;
        const Vec3d v = cross(axis, u);
        std::vector<std::size_t> before, now;
        for (const Ring& ring : rings) {
            now.clear();
            for (int i = 0; i < kSides; ++i) {
                const auto a = exact::sin_cos(2 * exact::kPi * i / kSides);
                now.push_back(corner(ring.centre + ring.radius * (a.cos * u + a.sin * v)));
            }
            for (std::size_t i = 0; i < before.size(); ++i) {
                const std::size_t next = (i + 1) % before.size();
                quad(before[i], before[next], now[next], now[i], surface);
            }
            std::swap(before, now);
        }
    }
    void add(const Frustum& f) {
        const Vec3d top = f.base + f.height * f.axis;
        rings({{f.base, 0}, {f.base, f.base_radius}, {top, f.top_radius}, {top, 0}}, f.axis, f.surface);
    }
    void add(const Sphere& s) {
        std::vector<Ring> all;
        for (int i = 0; i <= kSides / 2; ++i) {
            const auto a = exact::sin_cos(2 * exact::kPi * i / kSides);
            all.push_back(
                {s.centre - Vec3d{0, 0, s.radius * a.cos}, i == 0 || i == kSides / 2 ? 0 : s.radius * a.sin});
        }
        rings(all, {0, 0, 1}, s.surface);
    }

  private:
    ActorMesh& mesh_;
};

bool has_area(const ActorMesh& mesh, const ActorMesh::Face& f) {
    const Vec3d a = mesh.vertices[f.corners[0]];
    const Vec3d n = cross(mesh.vertices[f.corners[1]] - a, mesh.vertices[f.corners[2]] - a);
    return dot(n, n) > 1e-16;
}

std::string line(const char* format, auto... values) {
    char text[256];
    std::snprintf(text, sizeof text, format, values...);
    return text;
}

std::string material_name(std::uint8_t reflectance) { return "reflectance_" + std::to_string(reflectance); }

void write_mesh(const ActorMesh& mesh, const std::filesystem::path& path) {
    FileWriter out(path);
    out.text("mtllib reflectances.mtl\n");
    for (const Vec3d v : mesh.vertices) out.text(line("v %.9g %.9g %.9g\n", v.x, v.y, v.z));
    int reflectance = -1;
    for (const ActorMesh::Face& f : mesh.faces) {
        if (f.reflectance_percent != reflectance)
            out.text("usemtl " + material_name(f.reflectance_percent) + "\n");
        reflectance = f.reflectance_percent;
        out.text(line("f %zu %zu %zu\n", f.corners[0] + 1, f.corners[1] + 1, f.corners[2] + 1));
    }
    out.finish();
}

void write_text(const std::filesystem::path& path, const std::string& text) {
    FileWriter out(path);
    out.text(text);
    out.finish();
}

/// When one of the crowd is there: near enough to the recording vehicle, and not in its way.
class Presence {
  public:
    Presence(Crowd& crowd, const Drive& drive, std::size_t who) : crowd_(crowd), drive_(drive), who_(who) {}

    bool at(double time_s) {
        const Vec3d car = drive_.true_pose_at(time_s).translation,
                    p = crowd_.somebody(who_, time_s).actor.position;
        const double d = (p.x - car.x) * (p.x - car.x) + (p.y - car.y) * (p.y - car.y);
        return d <= kReach_m * kReach_m && d >= Crowd::kClearance_m * Crowd::kClearance_m;
    }
    /// The spans of [0, end_s], to a microsecond; shorter ones than a step may be overlooked.
    std::vector<std::pair<double, double>> spans(double end_s) {
        std::vector<std::pair<double, double>> all;
        bool before = at(0);
        if (before) all.emplace_back(0, end_s);
        double last_s = 0;
        while (last_s < end_s) {
            const double now_s = std::min(end_s, last_s + kStep_s);
            const bool now = at(now_s);
            if (now && !before) all.emplace_back(change(last_s, now_s, now), end_s);
            if (!now && before) all.back().second = change(last_s, now_s, now);
            before = now, last_s = now_s;
        }
        return all;
    }

  private:
    /// The side of the change where it is there.
    double change(double low_s, double high_s, bool appears) {
        while (high_s - low_s > kSharp_s) {
            const double middle_s = (low_s + high_s) / 2;
            (at(middle_s) == appears ? high_s : low_s) = middle_s;
        }
        return appears ? high_s : low_s;
    }

    Crowd& crowd_;
    const Drive& drive_;
    std::size_t who_;
};

/// Times at which a track has a pose: a grid, the ends, and just where the picture of a walking person
/// changes.
std::vector<double> pose_times(const Somebody& somebody, double begin_s, double end_s) {
    std::set<double> times{begin_s, end_s};
    for (double t = std::ceil(begin_s / kStep_s) * kStep_s; t < end_s; t += kStep_s)
        if (t > begin_s + kSharp_s && t < end_s - kSharp_s) times.insert(t);
    if (somebody.seconds_a_picture > 0)
        for (double k = std::ceil((begin_s - somebody.first_picture_s) / somebody.seconds_a_picture);; ++k) {
            const double t = somebody.first_picture_s + k * somebody.seconds_a_picture;
            if (t >= end_s - kSharp_s) break;
            if (t > begin_s + kSharp_s) times.insert(t);
        }
    return {times.begin(), times.end()};
}

constexpr const char* kScenario =
    "# The drive of the recording scanner among everything that moved: citysplat simulate CITY --scenario "
    "FILE --out DIR\n"
    "trajectory = \"../trajectory.tum\"\n"
    "classes = \"synthetic\"\n\n"
    "[[sensor]]\nsensor = \"../%s.toml\"\nmount_deg = [0.0, -45.0, 0.0]\n\n";

/// Flats and boxes are exact; round things have 48 sides.
ActorMesh mesh_of(const Geometry& shape) {
    ActorMesh mesh;
    Mesher mesher(mesh);
    for (const Flat& f : shape.of<Flat>()) mesher.add(f);
    for (const Box& b : shape.of<Box>()) mesher.add(b);
    for (const Frustum& f : shape.of<Frustum>()) mesher.add(f);
    for (const Sphere& s : shape.of<Sphere>()) mesher.add(s);
    std::erase_if(mesh.faces, [&](const ActorMesh::Face& f) { return !has_area(mesh, f); });
    return mesh;
}

}  // namespace

void write_actor_files(const Actors& actors, const Drive& drive, Vec3d origin_m,
                       const std::filesystem::path& folder) {
    std::set<std::uint8_t> reflectances;
    char head[512];
    std::snprintf(head, sizeof head, kScenario, "scanner32");
    std::string scenario = head;
    for (std::size_t i = 0; i < actors.shapes(); ++i) {
        const ActorMesh mesh = mesh_of(actors.shape(i));
        for (const ActorMesh::Face& f : mesh.faces) reflectances.insert(f.reflectance_percent);
        const std::string name = actors.shape_name(i);
        write_mesh(mesh, folder / (name + ".obj"));
        scenario += "[[object]]\nname = \"" + name + "\"\nfile = \"" + name +
                    ".obj\"\norigin = \"file\"\nlabel = " + std::to_string(actors.shape_label(i)) + "\n\n";
    }
    std::string materials;
    for (const std::uint8_t r : reflectances)
        materials +=
            "newmtl " + material_name(r) + line("\nKd %.2f %.2f %.2f\n", r / 100.0, r / 100.0, r / 100.0);
    write_text(folder / "reflectances.mtl", materials);

    const double end_s = drive.duration_s();
    Vec3d low{1e300, 1e300, 0}, high{-1e300, -1e300, 0};
    for (std::int64_t k = 0; k < drive.pose_count(); ++k) {
        const Vec3d t = drive.true_pose(k).translation;
        low = {std::min(low.x, t.x), std::min(low.y, t.y), 0},
        high = {std::max(high.x, t.x), std::max(high.y, t.y), 0};
    }
    const Vec3d middle = 0.5 * (low + high);
    Crowd crowd(actors, {middle.x, middle.y, length(high - low) / 2 + kReach_m}, {0, end_s});
    FileWriter out(folder / "tracks.csv");
    out.text("time,id,name,class,object,x,y,z,yaw_rad\n");
    for (std::size_t who = 0; who < crowd.size(); ++who) {
        std::size_t part = 0;
        for (const auto& [from_s, to_s] : Presence(crowd, drive, who).spans(end_s)) {
            if (to_s - from_s < 10 * kSharp_s) continue;
            const Somebody somebody = crowd.somebody(who, from_s);
            const std::string name = (somebody.person ? "person " : "vehicle ") + std::to_string(who);
            for (const double time_s : pose_times(somebody, from_s, to_s)) {
                // A picture begins with its first pose: ask a moment later which one it is.
                const Somebody now = crowd.somebody(who, time_s);
                const Somebody later = crowd.somebody(who, std::min(to_s, time_s + kSharp_s / 2));
                const Vec3d p = now.actor.position + origin_m;
                out.text(line("%.9f,", Drive::kBegin_s + time_s) + std::to_string(who) + "." +
                         std::to_string(part) + "," + name + "," +
                         std::to_string(actors.shape_label(later.shape)) + "," +
                         actors.shape_name(later.shape) +
                         line(",%.6f,%.6f,%.6f,%.9f\n", p.x, p.y, p.z,
                              exact::atan2(now.actor.sin_yaw, now.actor.cos_yaw)));
            }
            ++part;
        }
    }
    out.finish();
    write_text(folder / "scenario.toml", scenario + "[[traffic]]\nfile = \"tracks.csv\"\n");
}

}  // namespace citysplat::synth
