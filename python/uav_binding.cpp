#include "api/parts.hpp"
#include "arrays.hpp"
#include "bindings.hpp"
#include "citysplat/uav.hpp"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace citysplat::python {

namespace {

using Three = std::array<double, 3>;
using Seven = std::array<double, 7>;

api::Vec3 vec(const Three& v) { return {v[0], v[1], v[2]}; }
Three row(const api::Vec3& v) { return {v.x, v.y, v.z}; }
Seven row(const api::Pose& p) { return {p.position.x, p.position.y, p.position.z, p.qx, p.qy, p.qz, p.qw}; }

/// `count` rows of `width` numbers, and what comes first of each by itself: the times.
template <class Put>
py::tuple stamped_rows(std::size_t count, std::size_t width, const Put& put) {
    py::array_t<double> times(static_cast<py::ssize_t>(count));
    py::array_t<double> rows({count, width});
    for (std::size_t i = 0; i < count; ++i) put(i, times.mutable_data()[i], rows.mutable_data() + i * width);
    return py::make_tuple(times, rows);
}

py::tuple take_poses(api::Uav& uav) {
    const auto poses = uav.take_poses();
    return stamped_rows(poses.size(), 7, [&](std::size_t i, double& time_s, double* to) {
        time_s = poses[i].time_s;
        const Seven seven = row(poses[i].pose);
        std::copy(seven.begin(), seven.end(), to);
    });
}

/// Rows of turn rate and force.
py::tuple take_imu(api::Uav& uav) {
    const auto readings = uav.take_imu();
    return stamped_rows(readings.size(), 6, [&](std::size_t i, double& time_s, double* to) {
        time_s = readings[i].time_s;
        const Three turn = row(readings[i].turn_rad_s), force = row(readings[i].force_m_s2);
        std::copy(turn.begin(), turn.end(), to);
        std::copy(force.begin(), force.end(), to + 3);
    });
}

}  // namespace

void add_uav(py::module_& module) {
    py::class_<api::Uav>(module, "Uav")
        .def(py::init([](const std::string& model, const Seven& start, double time_s, std::uint64_t seed) {
            const auto& [x, y, z, qx, qy, qz, qw] = start;
            return std::make_unique<api::Uav>(model, api::Pose{{x, y, z}, qx, qy, qz, qw}, time_s, seed);
        }))
        .def("go_to",
             [](api::Uav& uav, const Three& place, double yaw_rad) { uav.go_to(vec(place), yaw_rad); })
        .def("fly_with", [](api::Uav& uav, const Three& velocity,
                            double yaw_rate) { uav.fly_with(vec(velocity), yaw_rate); })
        .def("push", [](api::Uav& uav, const Three& force) { uav.push(vec(force)); })
        .def("advance_to", &api::Uav::advance_to, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("time_s", &api::Uav::time_s)
        .def_property_readonly("pose", [](const api::Uav& uav) { return row(uav.pose()); })
        .def_property_readonly("velocity", [](const api::Uav& uav) { return row(uav.velocity_m_s()); })
        .def_property_readonly("box",
                               [](const api::Uav& uav) {
                                   const auto& [low, high] = uav.body();
                                   return std::array<double, 6>{low.x, low.y, low.z, high.x, high.y, high.z};
                               })
        .def("take_poses", &take_poses)
        .def("take_imu", &take_imu);
}

}  // namespace citysplat::python
