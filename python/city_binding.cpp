#include "api/parts.hpp"
#include "arrays.hpp"
#include "bindings.hpp"
#include "core/math/math_hd.hpp"
#include "core/printable.hpp"
#include "interruptible.hpp"
#include "view/render.hpp"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

namespace py = pybind11;

namespace citysplat::python {

namespace {

/// A tile whose columns are seen by arrays, which keep it.
struct PyTile {
    SplatTile tile;

    Vec3d origin() const { return tile.frame().origin_m(); }
};

/// A column of the tile as it is in memory.
template <class T>
void add_column(py::class_<PyTile>& tile, const char* name, std::span<const T> (SplatTile::*column)() const) {
    tile.def_property_readonly(name, [column](const py::object& self) {
        return view_of((self.cast<const PyTile&>().tile.*column)(), self);
    });
}

/// One value, or three, of each disc.
template <class T, class Put>
py::array_t<T> of_discs(const PyTile& t, std::size_t each, const Put& put) {
    const auto n = static_cast<py::ssize_t>(t.tile.size());
    py::array_t<T> made(each == 1 ? std::vector<py::ssize_t>{n}
                                  : std::vector<py::ssize_t>{n, static_cast<py::ssize_t>(each)});
    T* at = made.mutable_data();
    for (std::size_t i = 0; i < t.tile.size(); ++i, at += each) put(at, i);
    return made;
}

void add_tile(py::module_& module) {
    py::class_<PyTile> tile(module, "Tile");
    tile.def("__len__", [](const PyTile& t) { return t.tile.size(); });
    tile.def_property_readonly("origin", [](const PyTile& t) {
        const Vec3d o = t.origin();
        return py::make_tuple(o.x, o.y, o.z);
    });
    add_column(tile, "x_packed", &SplatTile::x);
    add_column(tile, "y_packed", &SplatTile::y);
    add_column(tile, "z_packed", &SplatTile::z);
    add_column(tile, "normal_packed", &SplatTile::normal);
    add_column(tile, "radius_steps", &SplatTile::radius);
    add_column(tile, "label", &SplatTile::label);
    add_column(tile, "intensity", &SplatTile::intensity);
    add_column(tile, "incidence", &SplatTile::incidence);
    add_column(tile, "instance", &SplatTile::instance);
    tile.def_property_readonly("local", [](const PyTile& t) {
        return of_discs<float>(t, 3, [&](float* at, std::size_t i) {
            const citysplat::Vec3f c = t.tile.disc(i).centre;
            at[0] = c.x, at[1] = c.y, at[2] = c.z;
        });
    });
    tile.def_property_readonly("xyz", [](const PyTile& t) {
        const Vec3d origin = t.origin();
        return of_discs<double>(t, 3, [&](double* at, std::size_t i) {
            const Vec3d c = origin + vec_cast<double>(t.tile.disc(i).centre);
            at[0] = c.x, at[1] = c.y, at[2] = c.z;
        });
    });
    tile.def_property_readonly("normal", [](const PyTile& t) {
        return of_discs<float>(t, 3, [&](float* at, std::size_t i) {
            const citysplat::Vec3f n = t.tile.disc(i).normal;
            at[0] = n.x, at[1] = n.y, at[2] = n.z;
        });
    });
    tile.def_property_readonly("radius", [](const PyTile& t) {
        return of_discs<float>(t, 1, [&](float* at, std::size_t i) { *at = t.tile.disc(i).radius; });
    });
}

py::dict tiles_of(const api::City& city) {
    const auto entries = city.parts().reader.tiles();
    const auto n = static_cast<py::ssize_t>(entries.size());
    py::list keys;
    py::array_t<std::uint64_t> splats(n), bytes(n);
    py::array_t<double> min({n, py::ssize_t{3}}), max({n, py::ssize_t{3}});
    for (py::ssize_t i = 0; i < n; ++i) {
        const TileEntry& e = entries[static_cast<std::size_t>(i)];
        keys.append(e.key.text());
        splats.mutable_at(i) = e.splats;
        bytes.mutable_at(i) = e.payload_bytes;
        const double low[]{e.min.x, e.min.y, e.min.z}, high[]{e.max.x, e.max.y, e.max.z};
        for (py::ssize_t k = 0; k < 3; ++k) min.mutable_at(i, k) = low[k], max.mutable_at(i, k) = high[k];
    }
    return py::dict(py::arg("key") = keys, py::arg("splats") = splats, py::arg("bytes") = bytes,
                    py::arg("min") = min, py::arg("max") = max);
}

/// How a picture is taken: a pose as x, y, z, yaw, pitch, roll in metres and degrees.
struct PictureOptions {
    std::vector<double> pose;
    int width, height;
    double fov_deg, far_m;
    std::string shade;
    int samples;
    bool edges;
    std::uint64_t memory_bytes;
};

py::array render(const api::City& city, const PictureOptions& how) {
    if (how.pose.size() != 6) throw UsageError("a pose is x, y, z, yaw, pitch, roll");
    if (how.width < 1 || how.height < 1 || how.width > 32768 || how.height > 32768)
        throw UsageError("a picture has from 1 to 32768 pixels along each side");
    if (!(how.fov_deg >= 1 && how.fov_deg <= 170)) throw UsageError("fov is from 1 to 170 degrees");
    if (how.samples < 1 || how.samples > 8) throw UsageError("samples are from 1 to 8");
    if (!(how.far_m >= 1 && how.far_m <= 10000)) throw UsageError("far is from 1 to 10000 m");
    view::View view;
    const auto angle = [&](std::size_t i) { return how.pose[i] * exact::kRadPerDegree; };
    const Trajectory place(
        {{0, {{how.pose[0], how.pose[1], how.pose[2]}, from_yaw_pitch_roll(angle(3), -angle(4), angle(5))}}},
        "the camera");
    view.camera.world_from_camera = place.poses()[0].world_from_body;
    view.camera.horizontal_fov_rad = how.fov_deg * exact::kRadPerDegree;
    view.camera.width = how.width;
    view.camera.height = how.height;
    view.options = {view::shade_from(how.shade), how.samples, how.edges, how.far_m, how.memory_bytes};
    std::optional<view::Rendering> made;
    CancelToken cancel;
    Mailbox mailbox;
    run_interruptibly(
        [&] {
            const auto tracer = trace::make_group_tracer();
            Progress progress;
            made = view::render(city.parts().reader, *tracer, view, cancel, progress);
        },
        cancel, mailbox, py::none());
    py::array_t<std::uint8_t> picture({how.height, how.width, 3});
    std::uint8_t* at = picture.mutable_data();
    for (int y = 0; y < how.height; ++y)
        for (int x = 0; x < how.width; ++x, at += 3) {
            const Rgb& pixel = made->picture.at(x, y);
            at[0] = pixel.r, at[1] = pixel.g, at[2] = pixel.b;
        }
    return picture;
}

std::map<std::uint16_t, std::string> classes_of(const api::City& city) {
    std::map<std::uint16_t, std::string> names;
    for (const auto& [label, entry] : city.parts().reader.classes().classes())
        names.emplace(label, as_utf8(entry.name));
    return names;
}

}  // namespace

void add_city(py::module_& module) {
    add_tile(module);
    py::class_<PictureOptions>(module, "PictureOptions")
        .def(py::init<>())
        .def_readwrite("pose", &PictureOptions::pose)
        .def_readwrite("width", &PictureOptions::width)
        .def_readwrite("height", &PictureOptions::height)
        .def_readwrite("fov_deg", &PictureOptions::fov_deg)
        .def_readwrite("far_m", &PictureOptions::far_m)
        .def_readwrite("shade", &PictureOptions::shade)
        .def_readwrite("samples", &PictureOptions::samples)
        .def_readwrite("edges", &PictureOptions::edges)
        .def_readwrite("memory_bytes", &PictureOptions::memory_bytes);
    py::class_<api::City>(module, "City")
        .def(py::init<const std::filesystem::path&, std::optional<std::int64_t>>(),
             py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("generation", &api::City::generation)
        .def_property_readonly("digest", &api::City::digest)
        .def_property_readonly("crs", [](const api::City& city) { return as_utf8(city.crs()); })
        .def_property_readonly("splats", &api::City::splats)
        .def_property_readonly("classes", &classes_of)
        .def("tiles", &tiles_of)
        .def("tile",
             [](const api::City& city, std::size_t index) {
                 if (index >= city.tiles().size())
                     throw py::index_error("the city has " + std::to_string(city.tiles().size()) +
                                           " tiles, not a tile " + std::to_string(index));
                 const py::gil_scoped_release release;
                 return std::make_unique<PyTile>(PyTile{city.parts().reader.load(index)});
             })
        .def("render", &render);
}

}  // namespace citysplat::python
