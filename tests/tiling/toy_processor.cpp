#include "tiling/toy_processor.hpp"

#include "core/math/rng_hd.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

namespace citysplat::test {

using namespace tiling;

namespace {

enum class State : std::uint8_t { unknown, accepted, suppressed };

std::uint64_t cell_key(std::int64_t x, std::int64_t y) {
    return static_cast<std::uint64_t>(x) * 0x9e3779b97f4a7c15ull ^ static_cast<std::uint64_t>(y);
}

}  // namespace

Calibration ToyProcessor::calibrate(const RegionReader& reader, const CancelToken&, Progress&) const {
    const Region all = reader.read(reader.bounds(), 0);
    std::uint64_t sum = 0;
    for (const TilePoint& p : all.points) sum += p.intensity;
    Calibration c;
    c.samples = all.points.size();
    c.mean_radius_m = radius_m_;
    c.mean_density = c.samples ? static_cast<double>(sum) / static_cast<double>(c.samples) : 0;
    findings_ = "{\"mean_intensity\":" + std::to_string(c.mean_density) + "}";
    return c;
}

Hash128 ToyProcessor::parameters_key() const {
    return Hasher().text("toy").number(radius_m_).number(calibration_.mean_density).finish();
}

TileOutput ToyProcessor::process(Region region, const CancelToken& cancel) const {
    cancel.check();
    ++calls_;
    const auto& points = region.points;
    const std::int64_t r = to_lattice(radius_m_);
    const LatticePoint origin = region.frame.origin();
    const auto world = [&](const TilePoint& p) {
        return LatticePoint{origin.x + p.x, origin.y + p.y, origin.z + p.z};
    };
    std::vector<std::uint64_t> priority(points.size());
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> cells;
    for (std::uint32_t i = 0; i < points.size(); ++i) {
        const LatticePoint w = world(points[i]);
        priority[i] = rng::key(rng::key(static_cast<std::uint64_t>(w.x), static_cast<std::uint64_t>(w.y)),
                               static_cast<std::uint64_t>(w.z));
        cells[cell_key(floor_div(w.x, r), floor_div(w.y, r))].push_back(i);
    }
    std::vector<std::uint32_t> order(points.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return priority[a] != priority[b] ? priority[a] > priority[b] : a < b;
    });
    std::vector<std::uint32_t> rank(points.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;

    std::vector<State> state(points.size(), State::unknown);
    std::vector<Splat> splats;
    bool unknown_core = false;
    for (const std::uint32_t i : order) {
        const LatticePoint w = world(points[i]);
        // Beyond the covered box there may be anything.
        bool unknown = !(w.x - r >= region.covered.min_x && w.x + r < region.covered.max_x &&
                         w.y - r >= region.covered.min_y && w.y + r < region.covered.max_y);
        bool suppressed = false;
        std::uint32_t around = 0;
        for (std::int64_t cx = floor_div(w.x, r) - 1; cx <= floor_div(w.x, r) + 1; ++cx)
            for (std::int64_t cy = floor_div(w.y, r) - 1; cy <= floor_div(w.y, r) + 1; ++cy) {
                const auto found = cells.find(cell_key(cx, cy));
                if (found == cells.end()) continue;
                for (const std::uint32_t j : found->second) {
                    const LatticePoint v = world(points[j]);
                    const std::int64_t dx = v.x - w.x, dy = v.y - w.y, dz = v.z - w.z;
                    if (dx * dx + dy * dy + dz * dz > r * r) continue;
                    ++around;
                    if (rank[j] >= rank[i]) continue;
                    suppressed = suppressed || state[j] == State::accepted;
                    unknown = unknown || state[j] == State::unknown;
                }
            }
        state[i] = suppressed ? State::suppressed : unknown ? State::unknown : State::accepted;
        if (!region.core.contains(w.x, w.y)) continue;
        unknown_core = unknown_core || state[i] == State::unknown;
        if (state[i] == State::accepted)
            splats.push_back({.x = points[i].x,
                              .y = points[i].y,
                              .z = points[i].z,
                              .normal = pack_normal({0, 0, 1}),
                              .radius = static_cast<std::uint16_t>(std::min<std::int64_t>(r, 65535)),
                              .label = points[i].label,
                              .intensity = points[i].intensity,
                              .point_count = static_cast<std::uint8_t>(std::min(around, 255u)),
                              .group = SplatGroup::surface,
                              .range = kUnknownByte,
                              .incidence = kUnknownByte,
                              .instance = 0});
    }
    TileOutput output;
    if (unknown_core) {
        output.wanted_halo_steps = 2 * (region.core.min_x - region.covered.min_x);
        return output;
    }
    output.splats = SplatTile(region.frame, splats);
    return output;
}

}  // namespace citysplat::test
