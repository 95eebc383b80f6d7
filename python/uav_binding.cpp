#include "api/parts.hpp"
#include "arrays.hpp"
#include "bindings.hpp"
#include "citysplat/uav.hpp"
#include "held.hpp"

#include <array>
#include <mutex>
#include <pybind11/stl.h>
#include <string>

namespace py = pybind11;

namespace citysplat::python {

namespace {

using Three = std::array<double, 3>;
using Seven = std::array<double, 7>;

api::Vec3 vec(const Three& v) { return {v[0], v[1], v[2]}; }
Three row(const api::Vec3& v) { return {v.x, v.y, v.z}; }
Seven row(const api::Pose& p) { return {p.position.x, p.position.y, p.position.z, p.qx, p.qy, p.qz, p.qw}; }

/// A UAV is used by one thread at a time.
class PyUav {
  public:
    PyUav(const std::string& model, const Seven& start, double time_s, std::uint64_t seed)
        : uav_(model, {{start[0], start[1], start[2]}, start[3], start[4], start[5], start[6]}, time_s,
               seed) {}

    /// What `work` returns of the UAV, which this thread holds meanwhile.
    template <class Work>
    auto with(const Work& work) {
        const Held held(mutex_);
        return work(uav_);
    }

  private:
    std::mutex mutex_;
    api::Uav uav_;
};

/// `count` rows of `width` numbers, and what comes first of each by itself: the times.
template <class Put>
py::tuple stamped_rows(std::size_t count, std::size_t width, const Put& put) {
    py::array_t<double> times(static_cast<py::ssize_t>(count));
    py::array_t<double> rows({count, width});
    for (std::size_t i = 0; i < count; ++i) put(i, times.mutable_data()[i], rows.mutable_data() + i * width);
    return py::make_tuple(times, rows);
}

py::tuple take_poses(PyUav& uav) {
    const auto poses = uav.with([](api::Uav& u) { return u.take_poses(); });
    return stamped_rows(poses.size(), 7, [&](std::size_t i, double& time_s, double* to) {
        time_s = poses[i].time_s;
        const Seven seven = row(poses[i].pose);
        std::copy(seven.begin(), seven.end(), to);
    });
}

/// Rows of turn rate and force.
py::tuple take_imu(PyUav& uav) {
    const auto readings = uav.with([](api::Uav& u) { return u.take_imu(); });
    return stamped_rows(readings.size(), 6, [&](std::size_t i, double& time_s, double* to) {
        time_s = readings[i].time_s;
        const Three turn = row(readings[i].turn_rad_s), force = row(readings[i].force_m_s2);
        std::copy(turn.begin(), turn.end(), to);
        std::copy(force.begin(), force.end(), to + 3);
    });
}

}  // namespace

void add_uav(py::module_& module) {
    py::class_<PyUav>(module, "Uav")
        .def(py::init<const std::string&, const Seven&, double, std::uint64_t>())
        .def("go_to", [](PyUav& uav, const Three& place,
                         double yaw_rad) { uav.with([&](api::Uav& u) { u.go_to(vec(place), yaw_rad); }); })
        .def("fly_with",
             [](PyUav& uav, const Three& velocity, double yaw_rate) {
                 uav.with([&](api::Uav& u) { u.fly_with(vec(velocity), yaw_rate); });
             })
        .def("push",
             [](PyUav& uav, const Three& force) { uav.with([&](api::Uav& u) { u.push(vec(force)); }); })
        .def("advance_to",
             [](PyUav& uav, double time_s) { uav.with([&](api::Uav& u) { u.advance_to(time_s); }); })
        .def_property_readonly("time_s",
                               [](PyUav& uav) { return uav.with([](api::Uav& u) { return u.time_s(); }); })
        .def_property_readonly("pose",
                               [](PyUav& uav) { return uav.with([](api::Uav& u) { return row(u.pose()); }); })
        .def_property_readonly(
            "velocity",
            [](PyUav& uav) { return uav.with([](api::Uav& u) { return row(u.velocity_m_s()); }); })
        .def_property_readonly("box",
                               [](PyUav& uav) {
                                   const auto [low, high] = uav.with([](api::Uav& u) { return u.body(); });
                                   return std::array<double, 6>{low.x, low.y, low.z, high.x, high.y, high.z};
                               })
        .def("take_poses", &take_poses)
        .def("take_imu", &take_imu);
}

}  // namespace citysplat::python
