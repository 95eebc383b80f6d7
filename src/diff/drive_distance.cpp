#include "diff/drive_distance.hpp"

#include "compare/distance_statistics.hpp"
#include "core/bytes.hpp"
#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"
#include "diff/surface_index.hpp"
#include "model/class_map.hpp"
#include "tiling/points/city_points.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>

namespace citysplat::diff {

namespace {

/// Enough of a sector (64 m) for a quantile.
constexpr std::uint64_t kPointsPerSector = 4000;

/// A hash of the place of a point.
std::uint64_t draw_of(const LatticePoint& p) {
    const auto bits = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
    return rng::mix(bits(p.x) * 0x9e3779b97f4a7c15u + bits(p.y) * 0xc2b2ae3d27d4eb4fu +
                    bits(p.z) * 0xd6e8feb86659fd93u);
}

std::string centimetres(double m) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f cm", 100 * m);
    return text.data();
}

/// Of the classes that move, in a class map as TOML.
std::vector<std::uint16_t> dynamic_labels(const std::string& text) {
    std::vector<std::uint16_t> labels;
    if (text.empty()) return labels;
    const ClassMap map = ClassMap::parse(text, "the class map of the city");
    for (const auto& [label, info] : map.classes())
        if (info.dynamic) labels.push_back(label);
    return labels;
}

}  // namespace

DriveDistance drive_distance(const tiling::ObjectStore& store, std::span<const tiling::ProductRow> tiles,
                             const std::vector<tiling::CitySource>& sources,
                             const std::vector<std::uint16_t>& labels_left_out, const CancelToken& cancel) {
    const tiling::CityPoints points(store, sources, &cancel);
    const std::vector<tiling::Sector> sectors = points.occupied_sectors();
    compare::DistanceStatistics all;
    DriveDistance result;
    std::mutex mutex;
    parallel_tasks(sectors.size(), [&](std::size_t i) {
        cancel.check();
        const LatticeBox box = sectors[i].box();
        const SurfaceIndex city(
            read_surfels(store, tiles, box.widened(static_cast<std::int64_t>(2 * kLatticePerMetre))));
        if (city.surfels().empty()) return;
        const tiling::Region region = points.read(box, 0);
        const std::uint64_t most = region.points.size() <= kPointsPerSector
                                       ? UINT64_MAX
                                       : UINT64_MAX / region.points.size() * kPointsPerSector;
        const LatticePoint origin = region.frame.origin();
        compare::DistanceStatistics here;
        std::uint64_t elsewhere = 0;
        for (const TilePoint& p : region.points) {
            const LatticePoint at{origin.x + p.x, origin.y + p.y, origin.z + p.z};
            if (draw_of(at) > most ||
                std::find(labels_left_out.begin(), labels_left_out.end(), p.label) != labels_left_out.end())
                continue;
            const auto nearest = city.nearest({to_metres(at.x), to_metres(at.y), to_metres(at.z)});
            if (nearest)
                here.add(nearest->distance_m);
            else
                ++elsewhere;
        }
        const std::lock_guard guard(mutex);
        all.add(here);
        result.elsewhere += elsewhere;
    });
    result.points = all.count();
    result.median_m = all.quantile_m(0.5);
    result.p95_m = all.quantile_m(0.95);
    return result;
}

tiling::CandidateGate drive_distance_gate(double most_p95_m, const CancelToken& cancel) {
    return [most_p95_m, &cancel](const tiling::Candidate& c) -> tiling::GateResult {
        tiling::GateResult result{"drive_distance", 0, most_p95_m, "no input is new"};
        if (c.new_sources.empty()) return result;
        const std::vector<std::uint16_t> dynamic = dynamic_labels(c.next.classes);
        const DriveDistance d = drive_distance(c.store, c.tiles_before, c.new_sources, dynamic, cancel);
        if (!d.can_judge()) {
            result.text =
                "only " + format_count(d.points) +
                " points of a sample of the new inputs lie where the city was before: nothing can be said";
            return result;
        }
        result.value = d.p95_m;
        result.text = "the new inputs are " + centimetres(d.median_m) + " (median) and " +
                      centimetres(d.p95_m) + " (p95) from the surfaces that the city had; " +
                      centimetres(most_p95_m) + " are allowed";
        return result;
    };
}

}  // namespace citysplat::diff
