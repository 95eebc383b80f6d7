#include "sim/drive/prepared_traffic.hpp"

#include "core/error.hpp"
#include "sim/traffic/ground.hpp"

#include <algorithm>

namespace citysplat::sim {

TrafficSpan span_of(std::span<const SensorWay> ways) {
    TrafficSpan span{1e300, -1e300, kEmptyBox, {}};
    double until_s = -1e300;
    for (const SensorWay& way : ways) {
        span.begin_s = std::min(span.begin_s, std::max(way.from_s, way.trajectory.begin_s()));
        span.end_s = std::max(span.end_s, std::min(way.to_s, way.trajectory.end_s()));
        // A sweep ends before the trajectory does; a moment may be at its very end.
        const double lasts_s = std::max(way.sweep_s, kMoment_s);
        until_s =
            std::max(until_s, std::min(way.to_s + lasts_s, way.trajectory.end_s() + (lasts_s - way.sweep_s)));
        Box3d path = kEmptyBox;
        for (const StampedPose& pose : way.trajectory.poses()) path.grow(pose.world_from_body.translation);
        // The largest object that can reach into the view.
        constexpr double kObject_m = 100;
        span.region.grow(path.widened(way.reach_m + kObject_m));
        span.ways.push_back({&way.trajectory, way.reach_m});
    }
    span.sweep_s = until_s - span.end_s;
    return span;
}

PreparedTraffic prepare_traffic(const ScenarioThings& things, const TrafficSpan& span,
                                const TrafficSources& sources, trace::ResidentCity& city,
                                const CancelToken& cancel) {
    TrafficPlan plan = plan_traffic(things, sources, span, cancel);
    if (std::find(plan.on_ground.begin(), plan.on_ground.end(), true) != plan.on_ground.end()) {
        const auto tiles = city.source().tiles();
        if (tiles.empty()) throw ConfigError("ground = \"city\" needs a city");
        double lowest_m = 1e300, highest_m = -1e300;
        for (const TileEntry& tile : tiles) {
            lowest_m = std::min(lowest_m, tile.min.z);
            highest_m = std::max(highest_m, tile.max.z);
        }
        stand_on_city(plan, city.source().classes(), lowest_m, highest_m,
                      [&](std::span<const trace::Ray> rays, std::span<trace::Hit> hits) {
                          city.closest(rays, hits, cancel);
                      });
    }
    return {Traffic(std::move(plan.shapes), std::move(plan.actors)), std::move(plan.rows),
            std::move(plan.frames), std::move(plan.frame_rows), std::move(plan.notes)};
}

}  // namespace citysplat::sim
