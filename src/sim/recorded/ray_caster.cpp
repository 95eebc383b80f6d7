#include "sim/recorded/ray_caster.hpp"

#include "core/parallel.hpp"

#include <algorithm>

namespace citysplat::sim {

namespace {

/// A ray that may go on behind its return shows what is missing there.
constexpr double kBehindReturn_m = 10;
/// Rays whose hits are held in memory at a time: 264 bytes each.
constexpr std::size_t kRaysAtOnce = std::size_t{1} << 18;

trace::Ray ray_of(const RecordedRay& r, double reach_m) {
    return {r.origin, vec_cast<float>(r.direction), static_cast<float>(kDeadZone_m),
            static_cast<float>(std::min(std::max(reach_m, r.range_m + kBehindReturn_m),
                                        static_cast<double>(trace::kMaxRange_m)))};
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
        for (const RecordedRay& r : recorded.subspan(first, count))
            rays.push_back(ray_of(r, static_cast<double>(options.reach_m)));
        lists.assign(count, trace::HitList{});
        city.nearest(rays, {model.depth, model.gap_m}, lists, cancel);
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
