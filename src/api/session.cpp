#include "api/parts.hpp"
#include "trace/tracer.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::api {
inline namespace v1 {

namespace {

std::unique_ptr<trace::Tracer> tracer_for(const sim::Scenario& scenario, double max_ray_m) {
    for (const sim::ScenarioSensor& sensor : scenario.sensors)
        max_ray_m = std::max(max_ray_m, sensor.run.sensor.max_range_m);
    trace::GroupOptions options;
    options.max_range_m = static_cast<float>(max_ray_m);
    return trace::make_group_tracer(options);
}

sim::ScenarioSessionOptions inner_options(const SessionOptions& options) {
    if (!(options.history_s >= 0)) throw UsageError("history_s of a session is not negative");
    if (!(options.from_s <= options.to_s)) throw UsageError("from_s of a session is not after its to_s");
    sim::ScenarioSessionOptions inner;
    inner.cache.budget_bytes = options.memory_bytes;
    inner.history_s = options.history_s;
    inner.from_s = options.from_s;
    inner.to_s = options.to_s;
    return inner;
}

sim::Scenario one_sensor(const Sensor& sensor, const SimulationOptions& how) {
    sim::Scenario scenario;
    sim::ScenarioSensor& one = scenario.sensors.emplace_back();
    one.run = run_of(sensor, how);
    one.name = one.run.sensor.id;
    return scenario;
}

}  // namespace

sim::Scenario load_scenario(const City& city, const std::filesystem::path& file) {
    sim::Scenario scenario = sim::Scenario::load(file, sim::Scenario::Ways::may_be_told);
    for (sim::ScenarioSnapshots& snapshots : scenario.things.snapshots)
        if (snapshots.folder.empty()) snapshots.folder = city.parts().directory;
    return scenario;
}

Session::Parts::Parts(const City& where, sim::Scenario scenario, const SessionOptions& options)
    : city(where),
      tracer(tracer_for(scenario, options.max_ray_m)),
      session({city.parts().reader, *tracer, &folders}, std::move(scenario), inner_options(options), cancel) {
}

Session::Session(const City& city, const std::filesystem::path& scenario, const SessionOptions& options)
    : parts_(guarded([&] { return std::make_unique<Parts>(city, load_scenario(city, scenario), options); })) {
}
Session::Session(const City& city, const Sensor& sensor, const SimulationOptions& how,
                 const SessionOptions& options)
    : parts_(guarded([&] { return std::make_unique<Parts>(city, one_sensor(sensor, how), options); })) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::vector<std::string> Session::sensors() const {
    std::vector<std::string> names;
    for (const sim::ScenarioSensor& sensor : parts_->session.scenario().sensors) names.push_back(sensor.name);
    return names;
}
std::vector<std::string> Session::names() const { return parts_->session.names(); }
std::vector<std::string> Session::notes() const {
    const auto notes = parts_->session.notes();
    return {notes.begin(), notes.end()};
}

void Session::advance(const std::string& name, std::span<const Trajectory::Stamped> poses) {
    guarded([&] {
        std::vector<StampedPose> inner;
        inner.reserve(poses.size());
        for (const Trajectory::Stamped& p : poses) inner.push_back({p.time_s, from_api(p.pose)});
        parts_->session.advance(name, inner);
    });
}

void Session::leave(const std::string& name, double time_s) {
    guarded([&] { parts_->session.leave(name, time_s); });
}

Scan Session::scan(std::size_t sensor, double time_s) {
    return guarded([&] {
        sim::Scan inner = parts_->session.scan(sensor, time_s, parts_->cancel);
        Scan scan;
        scan.returns.reserve(inner.returns.size());
        to_api(inner, scan);
        parts_->session.recycle(std::move(inner));
        return scan;
    });
}

std::vector<Hit> Session::cast(std::span<const Ray> rays, double time_s) {
    return guarded([&] {
        if (!std::isfinite(time_s)) throw UsageError("the time of a cast is not a number");
        std::vector<trace::Ray> inner;
        inner.reserve(rays.size());
        for (const Ray& ray : rays) inner.push_back(from_api(ray));
        std::vector<trace::Hit> found(rays.size());
        parts_->session.cast(inner, time_s, found, parts_->cancel);
        std::vector<Hit> hits(rays.size());
        for (std::size_t i = 0; i < rays.size(); ++i) hits[i] = to_api(found[i], inner[i]);
        return hits;
    });
}

Clearance Session::clearance(const ClearanceQuestion& question) {
    return guarded([&] {
        const Box3d box{from_api(question.body.min), from_api(question.body.max)};
        const Vec3d size = box.max - box.min;
        if (!(size.x >= 0 && size.y >= 0 && size.z >= 0))
            throw UsageError("the box of a body has its lower corner above its upper one, or no numbers");
        if (!(question.limit_m >= 0)) throw UsageError("the limit of a clearance is not negative");
        const citysplat::Trajectory place({{question.time_s, from_api(question.pose)}}, "the body");
        const sim::Clearance near =
            parts_->session.clearance({sim::ClearanceBody(box), place.poses()[0].world_from_body,
                                       question.time_s, question.vehicle, question.limit_m});
        Clearance result{near.distance_m, near.found, near.touches, {}, to_api(near.place), near.label};
        if (near.actor) result.actor = parts_->session.traffic().actors()[*near.actor].name;
        return result;
    });
}

SimulationResult Session::result(std::size_t sensor) const {
    return guarded([&] {
        const sim::SimulationReport report = parts_->session.report(sensor);
        return SimulationResult{
            report.scans, report.rays, report.hits, report.digest.hex(),
            sim::warnings_of(report, parts_->session.scenario().sensors[sensor].run.sensor)};
    });
}

}  // namespace v1
}  // namespace citysplat::api
