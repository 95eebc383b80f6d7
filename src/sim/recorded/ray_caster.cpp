#include "sim/recorded/ray_caster.hpp"

#include "core/parallel.hpp"

#include <algorithm>

namespace citysplat::sim {

namespace {

/// A ray that may go on behind its return shows what is missing there.
constexpr double kBehindReturn_m = 10;
/// Rays whose hits are held in memory at a time: 264 bytes each.
constexpr std::size_t kRaysAtOnce = std::size_t{1} << 18;

trace::Ray ray_of(const RecordedRay& r, const CastOptions& options) {
    const double reach_m = std::max(static_cast<double>(options.reach_m), r.range_m + kBehindReturn_m);
    trace::Ray ray{r.origin, vec_cast<float>(r.direction), static_cast<float>(kDeadZone_m),
                   static_cast<float>(std::min(reach_m, static_cast<double>(trace::kMaxRange_m)))};
    if (!options.parts.empty()) ray.time_s = static_cast<float>(r.time_s - options.begin_s);
    return ray;
}

}  // namespace

std::vector<Return> cast_again(std::span<const RecordedRay> recorded, const CastOptions& options,
                               trace::ResidentCity& city, const CancelToken& cancel) {
    ReturnModel model;
    model.noise = 0;
    model.depth = std::clamp(options.hits, 1u, static_cast<std::uint32_t>(trace::kMaxHits));
    model.gap_m = options.gap_m;
    std::vector<Return> returns(recorded.size());
    std::vector<trace::Ray> rays;
    std::vector<trace::HitList> lists;
    for (std::size_t first = 0; first < recorded.size(); first += kRaysAtOnce) {
        const std::size_t count = std::min(kRaysAtOnce, recorded.size() - first);
        rays.clear();
        for (const RecordedRay& r : recorded.subspan(first, count)) rays.push_back(ray_of(r, options));
        lists.assign(count, trace::HitList{});
        const std::size_t batch = trace::shared_batch(city.tracer(), rays);
        city.visit(city.reach(rays), cancel, [&](const trace::ResidentCity::Pass& pass) {
            // Parts belong to one pass: a hit must not be found twice.
            const trace::Scene scene(pass.tiles, pass.first ? options.parts : std::span<const trace::Part>{});
            parallel_for((count + batch - 1) / batch, [&](std::size_t i) {
                cancel.check();
                const std::size_t begin = i * batch, rest = std::min(batch, count - begin);
                city.tracer().nearest(scene, std::span(rays).subspan(begin, rest), model.depth, model.gap_m,
                                      std::span(lists).subspan(begin, rest));
            });
        });
        parallel_ranges(count, 4096, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const Echo echo = echo_of(lists[i].hits, std::min(lists[i].count, model.depth), model.gap_m);
                returns[first + i] = return_of({model, 0, Firing{}, rays[i]}, echo);
            }
        });
    }
    return returns;
}

}  // namespace citysplat::sim
