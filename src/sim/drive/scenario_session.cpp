#include "sim/drive/scenario_session.hpp"

#include "core/error.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::sim {

namespace {

/// Rays have their times in single precision: they may lie so much after the end of a sweep.
constexpr double kRounding_s = 1e-6;

}  // namespace

ScenarioSession::ScenarioSession(const Sources& sources, Scenario scenario,
                                 const ScenarioSessionOptions& options, const CancelToken& cancel)
    : scenario_(std::move(scenario)), options_(options) {
    if (scenario_.smooth_s > 0)
        throw ConfigError(
            "smooth_s: a session moves in straight lines between the poses that it is told; leave it out");
    read_ways();
    prepare(sources, cancel);
    name_everybody();
    SessionScene scene{sources.city, sources.tracer, options.cache, &traffic_.traffic, traffic_.frames};
    scene.clearance_bytes = options.cache.budget_bytes / 8;
    session_ = std::make_unique<Session>(scene);
    for (const ScenarioSensor& sensor : scenario_.sensors)
        session_->add({sensor.run, way_of(sensor).path, sensor.vehicle});
}

void ScenarioSession::read_ways() {
    TrajectoryOptions how;
    how.allow_gaps = true;
    const auto add = [&](const std::string& name, const std::filesystem::path& file, std::uint32_t vehicle) {
        Way way{{}, {}, vehicle};
        if (!file.empty()) way.path = read_trajectory(file, how);
        if (!ways_.emplace(name, std::move(way)).second)
            throw ConfigError("a vehicle of a session cannot be named \"" + name + "\"");
    };
    const auto& sensors = scenario_.sensors;
    if (std::any_of(sensors.begin(), sensors.end(),
                    [](const ScenarioSensor& sensor) { return sensor.vehicle == kNoVehicle; }))
        add(kOwnWay, scenario_.trajectory, kNoVehicle);
    const auto& vehicles = scenario_.things.vehicles;
    for (std::uint32_t i = 0; i < vehicles.size(); ++i) add(vehicles[i].name, vehicles[i].trajectory, i);
}

void ScenarioSession::prepare(const Sources& sources, const CancelToken& cancel) {
    if (scenario_.things.empty()) return;
    std::vector<SensorWay> known;
    bool all_known = true;
    double longest_sweep_s = kMoment_s;
    for (const ScenarioSensor& sensor : scenario_.sensors) {
        longest_sweep_s = std::max(longest_sweep_s, sweep_seconds(sensor.run.sensor));
        const Trajectory& way = way_of(sensor).path;
        all_known &= !way.empty();
        if (!way.empty())
            known.push_back({way, sensor.schedule.from_s, sensor.schedule.to_s, sensor.run.sensor.max_range_m,
                             sweep_seconds(sensor.run.sensor)});
    }
    TrafficSpan span = span_of(known);
    if (!all_known) {
        // Whoever is told may come anywhere, as long as the session lasts.
        span.region = Box3d{{-1e9, -1e9, -1e9}, {1e9, 1e9, 1e9}};
        span.begin_s = options_.from_s, span.end_s = options_.to_s, span.sweep_s = longest_sweep_s;
    }
    if (std::isfinite(options_.from_s)) span.begin_s = std::min(span.begin_s, options_.from_s);
    if (std::isfinite(options_.to_s) && options_.to_s > span.end_s)
        span.end_s = options_.to_s, span.sweep_s = longest_sweep_s;
    const ClassMap classes =
        scenario_.classes.empty() ? sources.city.classes() : ClassMap::load(scenario_.classes);
    trace::ResidentCity resident(sources.city, sources.tracer, options_.cache);
    traffic_ = prepare_traffic(scenario_.things, span, {classes, sources.folders}, resident, cancel);
}

ScenarioSession::Way& ScenarioSession::way_of(const ScenarioSensor& sensor) {
    return ways_.at(sensor.vehicle == kNoVehicle ? kOwnWay : scenario_.things.vehicles[sensor.vehicle].name);
}

void ScenarioSession::name_everybody() {
    std::map<std::string, std::uint32_t> namesakes;
    const auto all = traffic_.traffic.actors();
    for (const Actor& actor : all) ++namesakes[actor.name];
    const auto& vehicles = scenario_.things.vehicles;
    // Numbers of actors: those of [[actor]] first, then the bodies of vehicles, as plan_traffic() has them.
    auto body = static_cast<std::uint32_t>(scenario_.things.actors.size());
    for (const ScenarioVehicle& vehicle : vehicles)
        if (!vehicle.object.empty()) actors_.emplace(vehicle.name, body++);
    for (std::uint32_t i = 0; i < scenario_.things.actors.size(); ++i)
        if (namesakes[all[i].name] == 1 && !ways_.contains(all[i].name)) actors_.emplace(all[i].name, i);
}

std::vector<std::string> ScenarioSession::names() const {
    std::vector<std::string> names;
    for (const auto& [name, way] : ways_) names.push_back(name);
    for (const auto& [name, actor] : actors_)
        if (!ways_.contains(name)) names.push_back(name);
    return names;
}

void ScenarioSession::refuse(const std::string& name) const {
    std::string all;
    for (const std::string& known : names()) all += (all.empty() ? "" : ", ") + known;
    throw UsageError("nobody in this session who could be told where it is has the name \"" + name +
                     "\"; there are " + (all.empty() ? "none" : all));
}

void ScenarioSession::advance(const std::string& name, std::span<const StampedPose> poses) {
    const auto way = ways_.find(name);
    const auto actor = actors_.find(name);
    if (way == ways_.end() && actor == actors_.end()) refuse(name);
    if (way != ways_.end()) {
        if (!way->second.told) way->second.told.emplace("\"" + name + "\"");
        way->second.told->append(poses);
    }
    if (actor == actors_.end()) return;
    ToldPath& body = told_actors_.try_emplace(actor->second, "\"" + name + "\"").first->second;
    // A vehicle may go on without its body.
    if (way == ways_.end() || !body.leaves()) body.append(poses);
}

void ScenarioSession::leave(const std::string& name, double time_s) {
    const auto actor = actors_.find(name);
    if (actor == actors_.end() && !ways_.contains(name)) refuse(name);
    if (actor == actors_.end())
        throw UsageError("\"" + name + "\" has no body: nobody can meet it, with or without leaving");
    told_actors_.try_emplace(actor->second, "\"" + name + "\"").first->second.leave(time_s);
}

void ScenarioSession::place_actors(double begin_s, double end_s) {
    for (const auto& [actor, path] : told_actors_)
        if (!path.empty()) traffic_.traffic.tell(actor, path.track_during(begin_s, end_s + kRounding_s));
}

Scan ScenarioSession::scan(std::size_t number, double time_s, const CancelToken& cancel) {
    if (number >= scenario_.sensors.size())
        throw UsageError("the session has " + std::to_string(scenario_.sensors.size()) +
                         " sensors, not a sensor " + std::to_string(number));
    const ScenarioSensor& sensor = scenario_.sensors[number];
    const double end_s = time_s + sweep_seconds(sensor.run.sensor);
    // The session also looks back, at the speed.
    if (Way& way = way_of(sensor); way.told && !way.told->empty())
        way.path = way.told->during(time_s - Session::kSpeed_s, end_s + kRounding_s);
    place_actors(time_s, end_s);
    Scan scan = session_->scan(number, time_s, cancel);
    const double needed_s = time_s - options_.history_s;
    for (auto& [name, way] : ways_)
        if (way.told) way.told->forget_before(needed_s);
    for (auto& [actor, path] : told_actors_) path.forget_before(needed_s);
    return scan;
}

void ScenarioSession::cast(std::span<const trace::Ray> rays, double time_s, std::span<trace::Hit> hits,
                           const CancelToken& cancel) {
    double end_s = time_s;
    for (const trace::Ray& ray : rays) end_s = std::max(end_s, time_s + static_cast<double>(ray.time_s));
    place_actors(time_s, end_s);
    session_->cast(rays, time_s, hits, cancel);
}

Clearance ScenarioSession::clearance(const Question& question) {
    std::uint32_t vehicle = kNoVehicle;
    if (!question.own.empty()) {
        const auto way = ways_.find(question.own);
        if (way == ways_.end() || way->second.vehicle == kNoVehicle)
            throw UsageError("this session has no vehicle \"" + question.own + "\"");
        vehicle = way->second.vehicle;
    }
    place_actors(question.time_s, question.time_s);
    return session_->clearance(question.body, {question.world_from_body, question.time_s, vehicle},
                               question.limit_m);
}

}  // namespace citysplat::sim
