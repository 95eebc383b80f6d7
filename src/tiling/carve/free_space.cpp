#include "tiling/carve/free_space.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace citysplat::tiling {

namespace {

constexpr std::uint32_t kNoLook = UINT32_MAX;
/// Slots in a look.
constexpr std::uint32_t kSlotsPerLook = 2;
/// Looks that see through a thing before it is called dynamic.
constexpr std::size_t kFewestLooks = 2;
/// The same before the first hit and after the last one together. However long a thing stood, so many hit
/// looks are enough to compare with: three seconds of free looks outweigh any wait at a traffic light.
constexpr std::size_t kFewestLooksOutside = 4, kMostHitLooks = 28;
/// What a ray says nothing about, before its end.
constexpr double kLeastMargin_m = 0.4, kRelativeMargin = 0.03, kHeightMargin_voxels = 1.5;
/// Nearer returns say nothing: the margins would be most of the ray.
constexpr double kShortestRay_m = 1.0;

/// Places along a ray are fractions of its length in units of 2⁻⁴⁰. Rays are shorter than 2²² steps along
/// each axis, so that products with 2⁴⁰ fit 64 bits.
constexpr int kFractionBits = 40;
constexpr double kOne = static_cast<double>(std::int64_t{1} << kFractionBits);

std::uint32_t look_of(std::uint32_t slot) { return (slot - 1) / kSlotsPerLook; }

std::uint64_t pair_of(std::uint32_t voxel, std::uint64_t look) { return std::uint64_t{voxel} << 32 | look; }
std::uint32_t voxel_in(std::uint64_t pair) { return static_cast<std::uint32_t>(pair >> 32); }

/// The pairs of one voxel, of sorted ones.
std::span<const std::uint64_t> of_voxel(const std::vector<std::uint64_t>& pairs, std::uint32_t voxel) {
    const auto first = std::lower_bound(pairs.begin(), pairs.end(), pair_of(voxel, 0));
    const auto last = std::lower_bound(first, pairs.end(), pair_of(voxel, UINT32_MAX));
    return {first, last};
}

/// Sorts parts, and merges them: nobody waits for all of it who wants to stop.
void sort_unique(std::vector<std::uint64_t>& values, const CancelToken& cancel) {
    constexpr std::size_t kPart = std::size_t{1} << 20;
    const std::size_t n = values.size();
    const auto at = [&](std::size_t i) {
        return values.begin() + static_cast<std::ptrdiff_t>(std::min(i, n));
    };
    for (std::size_t begin = 0; begin < n; begin += kPart) {
        cancel.check();
        std::sort(at(begin), at(begin + kPart));
    }
    for (std::size_t width = kPart; width < n; width *= 2)
        for (std::size_t begin = 0; begin + width < n; begin += 2 * width) {
            cancel.check();
            std::inplace_merge(at(begin), at(begin + width), at(begin + 2 * width));
        }
    values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// Points between two looks at the token.
constexpr std::size_t kPointsAtOnce = std::size_t{1} << 16;

}  // namespace

/// A ray on its way through the voxels: crossing k of an axis is at first + k · step, exactly, wherever one
/// begins to count. That is why it does not matter where the region cuts it.
struct FreeSpace::Walk {
    std::array<std::int64_t, 3> origin, direction;  ///< world steps, to the point
    std::int64_t begin = 0, end = 0;                ///< fractions
    std::int64_t half_edge = 0;                     ///< the fraction that half an edge of a voxel is

    /// Leaves out what the ray says nothing about. False when nothing is left.
    bool limit() {
        double squares = 0;
        for (const std::int64_t d : direction) squares += static_cast<double>(d * d);
        const double length = std::sqrt(squares);
        constexpr auto kMetre = static_cast<double>(kLatticePerMetre);
        constexpr auto kEdge = static_cast<double>(kVoxelSteps),
                       kLongest = static_cast<double>(kLongestRaySteps);
        if (length < kShortestRay_m * kMetre) return false;
        double margin = std::max(kLeastMargin_m * kMetre, kRelativeMargin * length);
        if (direction[2] != 0) {
            const double down = std::abs(static_cast<double>(direction[2]));
            margin = std::max(margin, std::min(kHeightMargin_voxels * kEdge * length / down, 0.5 * length));
        }
        if (length > kLongest) begin = static_cast<std::int64_t>((1 - kLongest / length) * kOne);
        end = static_cast<std::int64_t>((1 - margin / length) * kOne);
        half_edge = static_cast<std::int64_t>(0.5 * kEdge / length * kOne);
        return begin < end;
    }

    /// Cuts it to a box. False when it passes by.
    bool clip(const LatticeBox& box) {
        const std::array<std::int64_t, 2> low{box.min_x, box.min_y}, high{box.max_x, box.max_y};
        for (std::size_t a = 0; a < 2; ++a) {
            const std::int64_t d = direction[a], o = origin[a], far = std::abs(d);
            if (d == 0) {
                if (o < low[a] || o >= high[a]) return false;
                continue;
            }
            const std::int64_t in = d > 0 ? low[a] - o : o - high[a], out = d > 0 ? high[a] - o : o - low[a];
            if (in >= far || out <= 0) return false;
            if (in > 0) begin = std::max(begin, (in << kFractionBits) / far);
            if (out < far) end = std::min(end, (out << kFractionBits) / far);
        }
        return begin < end;
    }
};

FreeSpace::FreeSpace(const Region& region, const CancelToken& cancel)
    : region_(region), cancel_(cancel), compact_above_(std::size_t{1} << 20) {
    const std::array<std::int64_t, 3> first = first_voxel();
    const LatticePoint origin = region.frame.origin();
    const auto packed = [&](const TilePoint& p) {
        return PackedVoxel(floor_div(origin.x + p.x, kVoxelSteps) - first[0],
                           floor_div(origin.y + p.y, kVoxelSteps) - first[1],
                           floor_div(origin.z + p.z, kVoxelSteps) - first[2]);
    };
    voxel_of_.reserve(region.points.size());
    for (std::size_t i = 0; i < region.points.size(); ++i) {
        if (i % kPointsAtOnce == 0) cancel_.check();
        voxel_of_.push_back(voxels_.insert(packed(region.points[i])));
    }
    voxels_.seal();
    for (std::size_t i = 0; i < voxel_of_.size(); ++i) {
        if (i % kPointsAtOnce == 0) cancel_.check();
        voxel_of_[i] = voxels_.blocks()[voxel_of_[i]].number(packed(region.points[i]));
    }
    last_look_.assign(voxels_.size(), kNoLook);
}

std::array<std::int64_t, 3> FreeSpace::first_voxel() const {
    const LatticePoint origin = region_.frame.origin();
    return {floor_div(origin.x, kVoxelSteps), floor_div(origin.y, kVoxelSteps),
            floor_div(origin.z, kVoxelSteps)};
}

void FreeSpace::add_rays(const Sector& sector, std::span<const Ray> rays) {
    cancel_.check();
    for (const Ray& r : rays) {
        if (!box_of(r, sector).intersects(region_.covered)) continue;
        const std::array<std::int64_t, 3> d{-r.sensor_dx * kSensorSteps, -r.sensor_dy * kSensorSteps,
                                            -r.sensor_dz * kSensorSteps};
        Walk ray{.origin = {sector.origin_x() + r.x - d[0], sector.origin_y() + r.y - d[1], r.z - d[2]},
                 .direction = d};
        if (ray.limit() && ray.clip(region_.covered)) walk(ray, look_of(r.slot));
    }
    if (passes_.size() <= compact_above_) return;
    sort_unique(passes_, cancel_);
    compact_above_ = std::max(compact_above_, 2 * passes_.size());
}

/// Which crossing comes next is not to be foreseen: the loop computes it without a branch.
void FreeSpace::walk(const Walk& ray, std::uint32_t look) {
    const std::array<std::int64_t, 3> first = first_voxel();
    std::array<std::int64_t, 3> at, crossing, step;
    std::array<std::uint64_t, 3> forward;
    for (std::size_t a = 0; a < 3; ++a) {
        const std::int64_t d = ray.direction[a], o = ray.origin[a], voxel = floor_div(o, kVoxelSteps);
        at[a] = voxel - first[a];
        forward[a] = d > 0 ? PackedVoxel::step(a) : 0 - PackedVoxel::step(a);
        crossing[a] = std::numeric_limits<std::int64_t>::max();
        step[a] = 0;
        if (d == 0) continue;
        const std::int64_t far = std::abs(d);
        const std::int64_t to_edge = d > 0 ? (voxel + 1) * kVoxelSteps - o : o - voxel * kVoxelSteps;
        crossing[a] = (to_edge << kFractionBits) / far;
        step[a] = (kVoxelSteps << kFractionBits) / far;
        if (crossing[a] < ray.begin) {
            const std::int64_t skipped = (ray.begin - crossing[a] + step[a] - 1) / step[a];
            at[a] += d > 0 ? skipped : -skipped;
            crossing[a] += skipped * step[a];
        }
    }
    std::int64_t entered = ray.begin;
    auto [next_x, next_y, next_z] = crossing;
    std::uint64_t voxel = PackedVoxel(at[0], at[1], at[2]).bits();
    std::uint64_t key = ~PackedVoxel(voxel).block();
    const VoxelSet::Block* block = nullptr;
    for (;;) {
        const std::int64_t left = std::min({next_x, next_y, next_z});
        if (left > ray.end) return;
        const PackedVoxel here(voxel);
        if (here.block() != key) {
            key = here.block();
            block = voxels_.block_of(here);
        }
        if (block && block->contains(here) && left - entered > ray.half_edge) {
            const std::uint32_t number = block->number(here);
            if (last_look_[number] != look) passes_.push_back(pair_of(number, look));
            last_look_[number] = look;
        }
        // All bits where it is this axis, the first of several.
        const std::int64_t along_x = -std::int64_t{next_x == left},
                           along_y = ~along_x & -std::int64_t{next_y == left}, along_z = ~(along_x | along_y);
        next_x += step[0] & along_x, next_y += step[1] & along_y, next_z += step[2] & along_z;
        voxel += (forward[0] & static_cast<std::uint64_t>(along_x)) |
                 (forward[1] & static_cast<std::uint64_t>(along_y)) |
                 (forward[2] & static_cast<std::uint64_t>(along_z));
        entered = left;
    }
}

std::vector<std::uint64_t> FreeSpace::hits_around(const std::vector<Candidate>& candidates) const {
    std::vector<bool> wanted(voxels_.size());
    for (const Candidate& c : candidates)
        for (const std::uint32_t n : c.around) wanted[n] = true;
    std::vector<std::uint64_t> hits;
    for (std::size_t i = 0; i < voxel_of_.size(); ++i)
        if (const TilePoint& p = region_.points[i]; wanted[voxel_of_[i]] && p.slot != TilePoint::kNoSlot)
            hits.push_back(pair_of(voxel_of_[i], look_of(p.slot)));
    sort_unique(hits, cancel_);
    return hits;
}

void FreeSpace::hit_looks(const Candidate& candidate, const std::vector<std::uint64_t>& hits,
                          std::vector<std::uint64_t>& looks) const {
    looks.clear();
    for (const std::uint32_t n : candidate.around)
        for (const std::uint64_t pair : of_voxel(hits, n)) looks.push_back(pair_of(0, pair & UINT32_MAX));
    sort_unique(looks, cancel_);
}

std::vector<FreeSpace::Looks> FreeSpace::count_looks() {
    sort_unique(passes_, cancel_);
    const std::vector<Candidate> candidates = find_candidates(1);
    const std::vector<std::uint64_t> hits = hits_around(candidates);
    std::vector<Looks> per_voxel(voxels_.size());
    std::vector<std::uint64_t> hit;
    for (const Candidate& c : candidates) {
        cancel_.check();
        hit_looks(c, hits, hit);
        Looks& looks = per_voxel[c.voxel];
        looks.passed = static_cast<std::uint32_t>(c.free.size());
        looks.hit = static_cast<std::uint32_t>(hit.size());
        for (const std::uint64_t look : c.free)
            looks.free += !std::binary_search(hit.begin(), hit.end(), look);
    }
    std::vector<Looks> looks(voxel_of_.size());
    for (std::size_t i = 0; i < looks.size(); ++i) looks[i] = per_voxel[voxel_of_[i]];
    return looks;
}

std::vector<bool> FreeSpace::find_dynamic() {
    sort_unique(passes_, cancel_);
    const std::vector<Candidate> candidates = find_candidates(kFewestLooks);
    const std::vector<std::uint64_t> hits = hits_around(candidates);
    std::vector<Verdict> verdicts(voxels_.size());
    std::vector<std::uint64_t> hit;
    for (const Candidate& c : candidates) {
        cancel_.check();
        hit_looks(c, hits, hit);
        verdicts[c.voxel] = judge(c.free, hit);
    }
    std::vector<bool> dynamic(voxel_of_.size());
    for (std::size_t i = 0; i < dynamic.size(); ++i) {
        const Verdict& v = verdicts[voxel_of_[i]];
        dynamic[i] = region_.points[i].slot == TilePoint::kNoSlot ? v.without_time : v.with_time;
    }
    return dynamic;
}

std::vector<FreeSpace::Candidate> FreeSpace::find_candidates(std::size_t fewest_looks) const {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < passes_.size();) {
        Candidate c{.voxel = voxel_in(passes_[i]), .free = {}, .around = {}};
        for (; i < passes_.size() && voxel_in(passes_[i]) == c.voxel; ++i)
            c.free.push_back(passes_[i] & UINT32_MAX);
        if (c.free.size() >= fewest_looks) candidates.push_back(std::move(c));
    }
    auto next = candidates.begin();
    voxels_.for_each([&](PackedVoxel at, std::uint32_t number) {
        if (next == candidates.end() || next->voxel != number) return;
        cancel_.check();
        for (int dx = -1; dx <= 1; ++dx)
            for (int dy = -1; dy <= 1; ++dy)
                for (int dz = -1; dz <= 1; ++dz)
                    if (const auto n = voxels_.find(at.moved(dx, dy, dz))) next->around.push_back(*n);
        ++next;
    });
    return candidates;
}

FreeSpace::Verdict FreeSpace::judge(std::span<const std::uint64_t> passed,
                                    std::span<const std::uint64_t> hit) {
    std::size_t free = 0, outside = 0;
    for (const std::uint64_t look : passed) {
        if (std::binary_search(hit.begin(), hit.end(), look)) continue;
        ++free;
        if (hit.empty() || look < hit.front() || look > hit.back()) ++outside;
    }
    const auto dynamic = [&](std::size_t hits) {
        const bool seen_through = free >= kFewestLooks && free > hits;
        const bool came_or_left =
            outside >= kFewestLooksOutside && 2 * outside > std::min(hits, kMostHitLooks);
        return seen_through || came_or_left;
    };
    // A point with a time lies in the voxel itself: its own look is one of the hits.
    return {.with_time = !hit.empty() && dynamic(hit.size() - 1), .without_time = dynamic(hit.size())};
}

}  // namespace citysplat::tiling
