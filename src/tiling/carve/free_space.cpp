#include "tiling/carve/free_space.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace citysplat::tiling {

namespace {

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

std::uint64_t look_of(const TilePoint& p) { return (p.slot - 1) / kSlotsPerLook; }

std::uint64_t pair_of(std::uint32_t voxel, std::uint64_t look) { return std::uint64_t{voxel} << 32 | look; }
std::uint32_t voxel_in(std::uint64_t pair) { return static_cast<std::uint32_t>(pair >> 32); }

/// The pairs of one voxel, of sorted ones.
std::span<const std::uint64_t> of_voxel(const std::vector<std::uint64_t>& pairs, std::uint32_t voxel) {
    const auto first = std::lower_bound(pairs.begin(), pairs.end(), pair_of(voxel, 0));
    const auto last = std::lower_bound(first, pairs.end(), pair_of(voxel, UINT32_MAX));
    return {first, last};
}

void sort_unique(std::vector<std::uint64_t>& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
}

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

FreeSpace::FreeSpace(const Region& region) : region_(region), compact_above_(std::size_t{1} << 20) {
    const LatticePoint origin = region.frame.origin();
    const std::array<std::int64_t, 3> first{
        floor_div(origin.x, kVoxelSteps), floor_div(origin.y, kVoxelSteps), floor_div(origin.z, kVoxelSteps)};
    const auto index = [&](const TilePoint& p) {
        const auto local = [](std::int64_t steps, std::int64_t from) {
            return static_cast<std::int32_t>(floor_div(steps, kVoxelSteps) - from);
        };
        return VoxelSet::Index{local(origin.x + p.x, first[0]), local(origin.y + p.y, first[1]),
                               local(origin.z + p.z, first[2])};
    };
    for (const TilePoint& p : region.points) voxels_.insert(index(p));
    voxels_.seal();
    voxel_of_.reserve(region.points.size());
    for (const TilePoint& p : region.points) voxel_of_.push_back(*voxels_.find(index(p)));
}

void FreeSpace::add_rays(const Sector& sector, std::span<const TilePoint> points) {
    for (const TilePoint& p : points) {
        const std::array<std::int64_t, 3> d{-p.sensor_dx * kSensorSteps, -p.sensor_dy * kSensorSteps,
                                            -p.sensor_dz * kSensorSteps};
        Walk ray{.origin = {sector.origin_x() + p.x - d[0], sector.origin_y() + p.y - d[1], p.z - d[2]},
                 .direction = d};
        if (ray.limit() && ray.clip(region_.covered)) walk(ray, look_of(p));
    }
    if (passes_.size() <= compact_above_) return;
    sort_unique(passes_);
    compact_above_ = std::max(compact_above_, 2 * passes_.size());
}

void FreeSpace::walk(const Walk& ray, std::uint64_t look) {
    const LatticePoint frame = region_.frame.origin();
    const std::array<std::int64_t, 3> frame_steps{frame.x, frame.y, frame.z};
    std::array<std::int32_t, 3> at, forward;
    std::array<std::int64_t, 3> crossing, step;
    for (std::size_t a = 0; a < 3; ++a) {
        const std::int64_t d = ray.direction[a], o = ray.origin[a], voxel = floor_div(o, kVoxelSteps);
        at[a] = static_cast<std::int32_t>(voxel - floor_div(frame_steps[a], kVoxelSteps));
        forward[a] = d > 0 ? 1 : -1;
        crossing[a] = std::numeric_limits<std::int64_t>::max();
        step[a] = 0;
        if (d == 0) continue;
        const std::int64_t far = std::abs(d);
        const std::int64_t first = d > 0 ? (voxel + 1) * kVoxelSteps - o : o - voxel * kVoxelSteps;
        crossing[a] = (first << kFractionBits) / far;
        step[a] = (kVoxelSteps << kFractionBits) / far;
        if (crossing[a] < ray.begin) {
            const std::int64_t skipped = (ray.begin - crossing[a] + step[a] - 1) / step[a];
            at[a] += forward[a] * static_cast<std::int32_t>(skipped);
            crossing[a] += skipped * step[a];
        }
    }
    std::int64_t entered = ray.begin;
    std::uint64_t key = ~VoxelSet::block_key({at[0], at[1], at[2]});
    const VoxelSet::Block* block = nullptr;
    for (;;) {
        const std::size_t axis = crossing[0] <= crossing[1] ? (crossing[0] <= crossing[2] ? 0 : 2)
                                                            : (crossing[1] <= crossing[2] ? 1 : 2);
        const std::int64_t left = crossing[axis];
        if (left > ray.end) return;
        if (left - entered > ray.half_edge) {
            const VoxelSet::Index voxel{at[0], at[1], at[2]};
            if (const std::uint64_t here = VoxelSet::block_key(voxel); here != key) {
                key = here;
                block = voxels_.block_of(voxel);
            }
            if (block && block->contains(voxel)) passes_.push_back(pair_of(block->number(voxel), look));
        }
        at[axis] += forward[axis];
        crossing[axis] += step[axis];
        entered = left;
    }
}

std::vector<bool> FreeSpace::find_dynamic(const CancelToken& cancel) {
    sort_unique(passes_);
    const std::vector<Candidate> candidates = find_candidates();
    std::vector<bool> wanted(voxels_.size());
    for (const Candidate& c : candidates)
        for (const std::uint32_t n : c.around) wanted[n] = true;
    std::vector<std::uint64_t> hits;
    for (std::size_t i = 0; i < voxel_of_.size(); ++i)
        if (const TilePoint& p = region_.points[i]; wanted[voxel_of_[i]] && p.slot != TilePoint::kNoSlot)
            hits.push_back(pair_of(voxel_of_[i], look_of(p)));
    sort_unique(hits);

    std::vector<Verdict> verdicts(voxels_.size());
    std::vector<std::uint64_t> hit;
    for (const Candidate& c : candidates) {
        cancel.check();
        hit.clear();
        for (const std::uint32_t n : c.around)
            for (const std::uint64_t pair : of_voxel(hits, n)) hit.push_back(pair_of(0, pair & UINT32_MAX));
        sort_unique(hit);
        verdicts[c.voxel] = judge(c.free, hit);
    }
    std::vector<bool> dynamic(voxel_of_.size());
    for (std::size_t i = 0; i < dynamic.size(); ++i) {
        const Verdict& v = verdicts[voxel_of_[i]];
        dynamic[i] = region_.points[i].slot == TilePoint::kNoSlot ? v.without_time : v.with_time;
    }
    return dynamic;
}

std::vector<FreeSpace::Candidate> FreeSpace::find_candidates() const {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < passes_.size();) {
        Candidate c{.voxel = voxel_in(passes_[i]), .free = {}, .around = {}};
        for (; i < passes_.size() && voxel_in(passes_[i]) == c.voxel; ++i)
            c.free.push_back(passes_[i] & UINT32_MAX);
        if (c.free.size() >= kFewestLooks) candidates.push_back(std::move(c));
    }
    auto next = candidates.begin();
    voxels_.for_each([&](const VoxelSet::Index& at, std::uint32_t number) {
        if (next == candidates.end() || next->voxel != number) return;
        for (int dx = -1; dx <= 1; ++dx)
            for (int dy = -1; dy <= 1; ++dy)
                for (int dz = -1; dz <= 1; ++dz)
                    if (const auto n = voxels_.find({at.x + dx, at.y + dy, at.z + dz}))
                        next->around.push_back(*n);
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
