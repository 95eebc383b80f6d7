#include "sim/drive/simulation.hpp"

#include "api/parts.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "trace/tracer.hpp"

namespace citysplat::api {
inline namespace v1 {

Trajectory Trajectory::read(const std::filesystem::path& file) {
    return guarded([&] {
        Trajectory result;
        result.parts_ = std::make_shared<Parts>(read_trajectory(file));
        return result;
    });
}

Trajectory Trajectory::of(std::span<const Stamped> poses) {
    return guarded([&] {
        std::vector<StampedPose> inner;
        for (const Stamped& p : poses) inner.push_back({p.time_s, from_api(p.pose)});
        if (inner.empty()) throw UsageError("a trajectory needs poses");
        Trajectory result;
        result.parts_ = std::make_shared<Parts>(citysplat::Trajectory(std::move(inner)));
        return result;
    });
}

double Trajectory::begin_s() const { return parts_->path.begin_s(); }
double Trajectory::end_s() const { return parts_->path.end_s(); }
std::optional<Pose> Trajectory::at(double time_s) const {
    const auto pose = parts_->path.at(time_s);
    return pose ? std::optional(to_api(*pose)) : std::nullopt;
}

Sensor Sensor::load(const std::string& name_or_file) {
    return guarded([&] {
        Sensor result;
        result.parts_ = std::make_shared<Parts>(sim::Sensor::load(name_or_file));
        return result;
    });
}
std::vector<std::string> Sensor::shipped() { return sim::Sensor::builtin_names(); }
std::string Sensor::name() const { return parts_->sensor.name; }
double Sensor::scans_per_second() const { return parts_->sensor.scan_hz; }
std::uint32_t Sensor::rays_per_scan() const { return parts_->sensor.rays_per_scan(); }
double Sensor::max_range_m() const { return parts_->sensor.max_range_m; }

void to_api(const sim::Scan& from, Scan& scan) {
    scan.index = from.index;
    scan.time_s = from.time_s;
    scan.sensor = to_api(from.world_from_sensor);
    scan.returns.clear();
    for (const sim::Return& r : from.returns)
        scan.returns.push_back({to_api(r.position), r.range_m, r.time_s, to_api(r.normal), r.cosine,
                                r.splat_id, r.beam, r.label, r.intensity, r.hits,
                                static_cast<Status>(r.status), r.instance});
}

sim::SensorRun run_of(const Sensor& sensor, const SimulationOptions& options) {
    sim::SensorRun run{sensor.parts().sensor, from_api(options.mount), options.seed};
    run.noise = options.noise;
    run.hits = options.hits_per_return;
    return run;
}

namespace {

/// Hands scans over in order, on the thread that concludes them.
class Handover final : public sim::ScanSink {
  public:
    explicit Handover(const std::function<bool(const Scan&)>& take) : take_(take) {}

    void consume(const sim::Scan&) override {}
    void conclude(const sim::Scan& scan) override {
        to_api(scan, scan_);
        if (!take_(scan_)) throw Interrupted();
    }

  private:
    const std::function<bool(const Scan&)>& take_;
    Scan scan_;
};

}  // namespace

SimulationResult simulate(const City& city, const Sensor& sensor, const Trajectory& trajectory,
                          const SimulationOptions& options, const std::function<bool(const Scan&)>& take) {
    return guarded([&] {
        const sim::SensorRun run = run_of(sensor, options);
        sim::SimulationOptions inner;
        inner.schedule = {options.from_s, options.to_s, options.scans_per_second};
        inner.cache.budget_bytes = options.memory_bytes;
        trace::GroupOptions tracing;
        tracing.max_range_m = static_cast<float>(run.sensor.max_range_m);
        const auto tracer = trace::make_group_tracer(tracing);
        Handover sink(take);
        Progress progress;
        const sim::SimulationReport report =
            sim::simulate({city.parts().reader, *tracer, run, trajectory.parts().path, inner}, sink,
                          CancelToken(), progress);
        return SimulationResult{report.scans, report.rays, report.hits, report.digest.hex(),
                                sim::warnings_of(report, run.sensor)};
    });
}

}  // namespace v1
}  // namespace citysplat::api
