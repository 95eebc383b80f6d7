#include "api/parts.hpp"
#include "arrays.hpp"
#include "bindings.hpp"
#include "core/bytes.hpp"
#include "core/number_range.hpp"
#include "core/parallel.hpp"
#include "core/printable.hpp"
#include "held.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/output/scan_format.hpp"

#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

namespace py = pybind11;

namespace citysplat::python {

namespace {

using Times = Rows<double>;
using Poses = Rows<double>;  ///< N × 7: x, y, z, qx, qy, qz, qw

std::vector<StampedPose> stamped(const Times& times, const Poses& poses) {
    if (times.ndim() != 1 || poses.ndim() != 2 || poses.shape(1) != 7 || poses.shape(0) != times.shape(0))
        throw UsageError("N poses are N times and N rows of x, y, z, qx, qy, qz, qw");
    std::vector<StampedPose> all;
    const double* p = poses.data();
    for (py::ssize_t i = 0; i < times.shape(0); ++i, p += 7)
        all.push_back({times.at(i), {{p[0], p[1], p[2]}, {p[3], p[4], p[5], p[6]}}});
    return all;
}

std::vector<double> seven(const Pose& pose) {
    const auto& [t, q] = pose;
    return {t.x, t.y, t.z, q.x, q.y, q.z, q.w};
}

/// What flags and files are held to when the program reads them.
void require_range(const char* what, const std::vector<double>& numbers, const NumberRange& range) {
    for (const double v : numbers)
        if (!range.contains(v))
            throw UsageError(std::string(what) + ": " + format_number(v) + " is not a number " +
                             range.text());
}

/// What the one sensor of a session without a scenario is like; the flags of `simulate`.
struct SensorOptions {
    std::string sensor, model, returns;
    std::vector<double> mount_m, mount_deg;
    std::uint64_t seed = 1;
    bool noise = true, intensity_noise = false, likely_drops = false;
    std::uint32_t hits = sim::kUsualHits;
    float gap_m = sim::kUsualGap_m;

    sim::Scenario scenario() const {
        sim::Scenario made;
        if (sensor.empty()) return made;
        sim::ScenarioSensor& one = made.sensors.emplace_back();
        sim::SensorRun& run = one.run;
        run.sensor = sim::Sensor::load(sensor);
        if (!model.empty()) run.sensor.model = model;
        run.sensor.intensity_noise |= intensity_noise;
        run.sensor.likely_drops |= likely_drops;
        if (!returns.empty()) run.sensor.beam.set_returns(returns, "returns, sensor \"" + sensor + "\"");
        require_range("mount", mount_m, ranges::kLever_m);
        require_range("mount_angles", mount_deg, ranges::kAngle_deg);
        run.body_from_sensor = sim::mount_from(mount_m, mount_deg, "mount, mount_angles");
        run.seed = seed;
        run.noise = noise;
        if (hits < 1 || hits > trace::kMaxHits)
            throw UsageError("hits are from 1 to " + std::to_string(trace::kMaxHits));
        run.hits = hits;
        require_range("gap", {double{gap_m}}, ranges::kGap_m);
        run.gap_m = gap_m;
        one.name = run.sensor.id;
        return made;
    }
};

/// A session is used by one thread at a time: whoever computes with it, or tells it something, holds it.
struct PySession {
    std::unique_ptr<api::Session::Parts> parts;
    mutable std::mutex mutex;
};

/// How returns become rows of an array.
struct RowOptions {
    bool sensor_frame = false, keep_misses = false, recorded = false;
};

py::dtype dtype_of(const sim::CloudLayout& layout) {
    static constexpr const char* kNames[]{"u1", "u2", "u4", "i4", "f4", "f8"};
    py::list fields;
    for (const io::Field& field : sim::point_fields(layout))
        fields.append(py::make_tuple(field.name, kNames[static_cast<std::size_t>(field.type)]));
    return py::dtype::from_args(fields);
}

/// The records of a PLY file of the scan, as an array that owns them.
py::array rows_of(const sim::Scan& scan, const RowOptions& options) {
    sim::CloudLayout layout;
    layout.frame = options.sensor_frame ? sim::CloudFrame::sensor : sim::CloudFrame::world;
    layout.keep_all = options.keep_misses;
    layout.recorded = options.recorded;
    layout.several = scan.returns_per_pulse > 1;
    std::vector<std::byte> records;
    io::CloudSummary summary;
    {
        const py::gil_scoped_release release;
        static const auto format = sim::make_scan_format("ply");
        records.resize((options.keep_misses ? scan.returns.size() : scan.hits) * format->most_record_bytes());
        std::byte* at = records.data();
        format->append({scan, 0, scan.returns.size()}, layout, at, summary);
        records.resize(static_cast<std::size_t>(at - records.data()));
    }
    const py::dtype type = dtype_of(layout);
    py::capsule owner;
    const std::span<std::byte> bytes = kept(std::move(records), owner);
    return py::array(type, {static_cast<py::ssize_t>(summary.points)}, {type.itemsize()}, bytes.data(),
                     owner);
}

py::dict scan(PySession& self, std::size_t sensor, double time_s, const RowOptions& options) {
    sim::Scan made;
    {
        const Held held(self.mutex);
        made = self.parts->session.scan(sensor, time_s, self.parts->cancel);
    }
    const py::dict result(py::arg("index") = made.index, py::arg("time_s") = made.time_s,
                          py::arg("pose") = py::array(py::cast(seven(made.world_from_sensor))),
                          py::arg("rays") = made.pulses(), py::arg("points") = rows_of(made, options));
    {
        const Held held(self.mutex);
        self.parts->session.recycle(std::move(made));
    }
    return result;
}

/// Rays as rows, and what came of them.
struct CastColumns {
    const double* origins;  ///< 3 for each ray, or for all
    std::size_t origin_step;
    const float* directions;
    float min_m, max_m;
    double* range_m;
    float* normal;
    std::uint16_t *label, *intensity, *instance;
    std::uint64_t* splat;
};

trace::Ray ray_of(const CastColumns& c, std::size_t i) {
    const double* o = c.origins + i * c.origin_step;
    const float* d = c.directions + 3 * i;
    citysplat::Vec3f direction{d[0], d[1], d[2]};
    const float length2 = dot(direction, direction);
    // What is of unit length up to rounding stays as it is.
    if (!(std::fabs(length2 - 1) < 1e-6f)) {
        const Vec3d whole{double{d[0]}, double{d[1]}, double{d[2]}};
        const double length = citysplat::length(whole);
        if (!(length > 1e-30 && length < 1e30))
            throw UsageError("ray " + format_count(i) + " has no direction");
        direction = vec_cast<float>((1 / length) * whole);
    }
    return {{o[0], o[1], o[2]}, direction, c.min_m, c.max_m};
}

void put_hit(const CastColumns& c, std::size_t i, const trace::Hit& hit, const trace::Ray& ray) {
    const bool met = hit.exists();
    c.range_m[i] = met ? hit.range_m : std::numeric_limits<double>::infinity();
    citysplat::Vec3f normal{0, 0, 0};
    if (met) normal = unpack_normal(hit.normal);
    if (dot(normal, ray.direction) > 0) normal = -normal;
    c.normal[3 * i] = normal.x, c.normal[3 * i + 1] = normal.y, c.normal[3 * i + 2] = normal.z;
    c.label[i] = met ? hit.label : std::uint16_t{0};
    c.intensity[i] = met ? hit.intensity : std::uint16_t{0};
    c.instance[i] = met ? hit.instance : std::uint16_t{0};
    c.splat[i] = met ? hit.splat_id : 0;
}

/// Few enough to look for Ctrl-C often. A few are still in the processor's cache when their hits are written;
/// where tiles must go so that others can come, more rays should share each of them.
std::size_t rays_at_once(PySession& self, std::size_t rays) {
    constexpr std::size_t kInCache = std::size_t{1} << 17, kSharingTiles = std::size_t{1} << 20;
    if (rays <= kInCache) return kInCache;  // without a look at all tiles of the city
    const Held held(self.mutex);
    return self.parts->session.holds_whole_city() ? kInCache : kSharingTiles;
}

py::dict cast(PySession& self, const Rows<double>& origins, const Rows<float>& directions, double time_s,
              std::pair<float, float> range_m) {
    const bool one_origin = origins.ndim() == 1 && origins.shape(0) == 3;
    if (directions.ndim() != 2 || directions.shape(1) != 3 ||
        !(one_origin ||
          (origins.ndim() == 2 && origins.shape(1) == 3 && origins.shape(0) == directions.shape(0))))
        throw UsageError("N rays are N × 3 directions and N × 3 origins, or one origin for all of them");
    if (!std::isfinite(time_s)) throw UsageError("the time of a cast is not a number");
    const py::ssize_t n = directions.shape(0);
    py::array_t<double> range(n);
    py::array_t<float> normal({n, py::ssize_t{3}});
    py::array_t<std::uint16_t> label(n), intensity(n), instance(n);
    py::array_t<std::uint64_t> splat(n);
    const CastColumns columns{origins.data(),           one_origin ? std::size_t{0} : std::size_t{3},
                              directions.data(),        range_m.first,
                              range_m.second,           range.mutable_data(),
                              normal.mutable_data(),    label.mutable_data(),
                              intensity.mutable_data(), instance.mutable_data(),
                              splat.mutable_data()};
    const std::size_t most = rays_at_once(self, static_cast<std::size_t>(n));
    std::vector<trace::Ray> rays;
    std::vector<trace::Hit> hits;
    for (std::size_t first = 0; first < static_cast<std::size_t>(n); first += most) {
        {
            const Held held(self.mutex);
            const std::size_t count = std::min(most, static_cast<std::size_t>(n) - first);
            rays.resize(count);
            hits.resize(count);
            constexpr std::size_t kGrain = 4096;
            parallel_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    rays[i] = ray_of(columns, first + i);
                    hits[i] = trace::Hit{};
                }
            });
            self.parts->session.cast(rays, time_s, hits, self.parts->cancel);
            parallel_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) put_hit(columns, first + i, hits[i], rays[i]);
            });
        }
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
    return py::dict(py::arg("t_hit") = range, py::arg("normal") = normal, py::arg("label") = label,
                    py::arg("intensity") = intensity, py::arg("instance") = instance,
                    py::arg("splat") = splat);
}

py::dict clearance(PySession& self, const std::vector<double>& box, const std::vector<double>& pose,
                   double time_s, std::pair<std::string, double> vehicle_and_limit) {
    if (box.size() != 6 || pose.size() != 7)
        throw UsageError("a box is its lower and its upper corner; a pose is x, y, z, qx, qy, qz, qw");
    if (!(box[0] <= box[3] && box[1] <= box[4] && box[2] <= box[5]))
        throw UsageError("the box of a body has its lower corner above its upper one, or no numbers");
    const auto& [vehicle, limit_m] = vehicle_and_limit;
    if (!(limit_m >= 0)) throw UsageError("the limit of a clearance is not negative");
    const Trajectory place({{time_s, {{pose[0], pose[1], pose[2]}, {pose[3], pose[4], pose[5], pose[6]}}}},
                           "the body");
    const sim::ClearanceBody body(Box3d{{box[0], box[1], box[2]}, {box[3], box[4], box[5]}});
    sim::Clearance near{};
    std::optional<std::string> actor;
    {
        const Held held(self.mutex);
        near =
            self.parts->session.clearance({body, place.poses()[0].world_from_body, time_s, vehicle, limit_m});
        if (near.actor) actor = self.parts->session.traffic().actors()[*near.actor].name;
    }
    return py::dict(py::arg("distance") = near.distance_m, py::arg("touches") = near.touches,
                    py::arg("found") = near.found, py::arg("actor") = actor, py::arg("label") = near.label,
                    py::arg("position") = py::make_tuple(near.place.x, near.place.y, near.place.z));
}

py::dict report(const PySession& self, std::size_t sensor) {
    const sim::SimulationReport r = [&] {
        const Held held(self.mutex);
        return self.parts->session.report(sensor);
    }();
    return py::dict(py::arg("scans") = r.scans, py::arg("rays") = r.rays, py::arg("hits") = r.hits,
                    py::arg("dropped") = r.dropped, py::arg("part_hits") = r.part_hits,
                    py::arg("tiles_loaded") = r.cache.tiles_loaded,
                    py::arg("resident_peak_bytes") = r.cache.peak_bytes,
                    py::arg("wait_seconds") = r.cache.wait_s, py::arg("digest") = r.digest.hex());
}

const sim::ScenarioSensor& sensor_of(const PySession& self, std::size_t sensor) {
    const auto& all = self.parts->session.scenario().sensors;
    if (sensor >= all.size()) throw UsageError("the session has no sensor " + std::to_string(sensor));
    return all[sensor];
}

std::vector<double> times_of(const PySession& self, std::size_t sensor, const Times& times,
                             std::vector<double> schedule) {
    const sim::SensorRun& run = sensor_of(self, sensor).run;
    if (times.size() < 1) throw UsageError("a drive needs poses");
    const Trajectory span(
        {{times.at(0), {}}, {std::max(times.at(times.size() - 1), std::nextafter(times.at(0), 1e300)), {}}});
    return sim::scan_times(run, span, {schedule.at(0), schedule.at(1), schedule.at(2)});
}

py::tuple read_poses(const std::filesystem::path& file) {
    const Trajectory path = [&] {
        const py::gil_scoped_release release;
        return read_trajectory(file);
    }();
    const auto n = static_cast<py::ssize_t>(path.poses().size());
    py::array_t<double> times(n), poses({n, py::ssize_t{7}});
    for (py::ssize_t i = 0; i < n; ++i) {
        const StampedPose& p = path.poses()[static_cast<std::size_t>(i)];
        times.mutable_at(i) = p.time_s;
        const std::vector<double> row = seven(p.world_from_body);
        std::copy(row.begin(), row.end(), poses.mutable_data(i, 0));
    }
    return py::make_tuple(times, poses);
}

std::unique_ptr<PySession> open_session(const api::City& city, const std::filesystem::path& scenario,
                                        const SensorOptions& sensor, const api::SessionOptions& options) {
    const py::gil_scoped_release release;
    auto made = std::make_unique<PySession>();
    made->parts = std::make_unique<api::Session::Parts>(
        city, scenario.empty() ? sensor.scenario() : api::load_scenario(city, scenario), options);
    return made;
}

}  // namespace

void add_session(py::module_& module) {
    py::class_<SensorOptions>(module, "SensorOptions")
        .def(py::init<>())
        .def_readwrite("sensor", &SensorOptions::sensor)
        .def_readwrite("model", &SensorOptions::model)
        .def_readwrite("returns", &SensorOptions::returns)
        .def_readwrite("mount_m", &SensorOptions::mount_m)
        .def_readwrite("mount_deg", &SensorOptions::mount_deg)
        .def_readwrite("seed", &SensorOptions::seed)
        .def_readwrite("noise", &SensorOptions::noise)
        .def_readwrite("intensity_noise", &SensorOptions::intensity_noise)
        .def_readwrite("likely_drops", &SensorOptions::likely_drops)
        .def_readwrite("hits", &SensorOptions::hits)
        .def_readwrite("gap_m", &SensorOptions::gap_m);
    py::class_<api::SessionOptions>(module, "SessionOptions")
        .def(py::init<>())
        .def_readwrite("memory_bytes", &api::SessionOptions::memory_bytes)
        .def_readwrite("history_s", &api::SessionOptions::history_s)
        .def_readwrite("max_ray_m", &api::SessionOptions::max_ray_m)
        .def_readwrite("from_s", &api::SessionOptions::from_s)
        .def_readwrite("to_s", &api::SessionOptions::to_s);
    py::class_<RowOptions>(module, "RowOptions")
        .def(py::init<>())
        .def_readwrite("sensor_frame", &RowOptions::sensor_frame)
        .def_readwrite("keep_misses", &RowOptions::keep_misses)
        .def_readwrite("recorded", &RowOptions::recorded);
    py::class_<PySession>(module, "Session")
        .def(py::init(&open_session))
        .def_property_readonly("names", [](const PySession& s) { return s.parts->session.names(); })
        .def_property_readonly("sensors",
                               [](const PySession& s) {
                                   std::vector<std::string> names;
                                   for (const auto& sensor : s.parts->session.scenario().sensors)
                                       names.push_back(sensor.name);
                                   return names;
                               })
        .def_property_readonly("notes",
                               [](const PySession& s) {
                                   std::vector<std::string> notes;
                                   for (const std::string& note : s.parts->session.notes())
                                       notes.push_back(as_utf8(note));
                                   return notes;
                               })
        .def("sweep_s",
             [](const PySession& s, std::size_t sensor) {
                 return sim::sweep_seconds(sensor_of(s, sensor).run.sensor);
             })
        .def("times", &times_of)
        .def("advance",
             [](PySession& s, const std::string& name, const Times& times, const Poses& poses) {
                 const std::vector<StampedPose> told = stamped(times, poses);
                 const Held held(s.mutex);
                 s.parts->session.advance(name, told);
             })
        .def("leave",
             [](PySession& s, const std::string& name, double time_s) {
                 const Held held(s.mutex);
                 s.parts->session.leave(name, time_s);
             })
        .def("scan", &scan)
        .def("cast", &cast)
        .def("clearance", &clearance)
        .def("report", &report);
    module.def("read_poses", &read_poses);
    module.def("parse_bytes", [](const std::string& text) { return parse_bytes(text, "memory"); });
}

}  // namespace citysplat::python
