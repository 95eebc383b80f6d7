#include "splat/selection.hpp"

#include "core/rng_hd.hpp"
#include "splat/parallel.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace citysplat::splat {
namespace {

/// Shares of the priority range, highest first. Early slices are small because each splat accepted there
/// spares the growth of those it suppresses.
constexpr std::array<double, 5> kSliceEnds{0.04, 0.12, 0.28, 0.55, 1.0};

/// Lower comes first. Positions are unique, so equal values are settled by rank.
std::uint64_t priority_of(const LatticePoint& p) {
    using rng::key;
    return key(key(key(0x5eed, static_cast<std::uint64_t>(p.x)), static_cast<std::uint64_t>(p.y)),
               static_cast<std::uint64_t>(p.z));
}

enum State : std::uint8_t { kOpen = 0, kMaybeSuppressed = 1, kSuppressed = 2 };

/// A point that was grown, with its place in the order and what it would suppress.
struct Candidate {
    std::uint64_t priority;
    Growth growth;
    std::uint32_t point;
    std::uint32_t suppressed_begin, suppressed_count, chunk;
};

class Selection {
  public:
    Selection(const SelectionInput& input, const CancelToken& cancel)
        : cloud_(input.cloud),
          index_(input.index),
          surface_(input.surface),
          edge_(input.edge),
          settings_(input.settings),
          observe_(input.observe),
          discs_(input.discs),
          cancel_(cancel),
          near_reaches_(settings_.reaches) {
        for (Reach& r : near_reaches_) r.k = std::min(r.k, std::max(12, r.k / 4));
    }

    Generation run() {
        slice_points();
        for (std::size_t s = 0; s < kSliceEnds.size(); ++s) {
            grow_slice(s);
            settle_slice();
        }
        return std::move(result_);
    }

  private:
    void slice_points();
    void grow_slice(std::size_t slice);
    void settle_slice();
    void mark(const Candidate& c, State state);

    struct Worker {
        SearchScratch scratch;
        NeighbourLists lists;
        std::vector<std::uint32_t> points;
        std::vector<std::size_t> slots;
    };
    void grow_chunk(Worker& worker, std::size_t chunk, const std::array<Reach, 6>& reaches);

    const PointCloud& cloud_;
    const NeighbourIndex& index_;
    const Surface& surface_;
    const CoveredEdge& edge_;
    const GenerationSettings& settings_;
    const bool observe_;
    const std::span<const FirstDisc> discs_;
    const CancelToken& cancel_;
    std::array<Reach, 6> near_reaches_;  ///< the nearest few, where most growth ends

    std::vector<std::uint64_t> priority_;
    std::vector<std::uint8_t> state_;
    std::vector<std::uint32_t> sliced_;  ///< points by slice, along the curve within a slice
    std::array<std::size_t, kSliceEnds.size() + 1> slice_begin_{};

    tbb::enumerable_thread_specific<Worker> workers_;
    std::vector<std::uint32_t> alive_;
    std::vector<Candidate> candidates_;
    std::vector<std::vector<std::uint32_t>> suppressed_;  ///< per chunk of the slice
    Generation result_;
};

void Selection::slice_points() {
    const std::size_t n = cloud_.size();
    priority_.resize(n);
    state_.assign(n, kOpen);
    std::vector<std::uint8_t> slice(n);
    const std::int64_t from_outside = settings_.widest_suppression();
    for (std::size_t i = 0; i < n; ++i) {
        priority_[i] = priority_of(cloud_.world(i));
        const double share = static_cast<double>(priority_[i] >> 11) * 0x1.0p-53;
        slice[i] = static_cast<std::uint8_t>(std::upper_bound(kSliceEnds.begin(), kSliceEnds.end(), share) -
                                             kSliceEnds.begin());
        // A splat outside what was read may suppress points near the edge.
        if (edge_.distance(cloud_.x[i], cloud_.y[i]) <= from_outside) state_[i] = kMaybeSuppressed;
        const bool gone =
            surface_.points[i].has(SurfacePoint::kOutlier) && surface_.points[i].has(SurfacePoint::kKnown);
        if (gone) state_[i] = kSuppressed;
        ++slice_begin_[slice[i] + 1u];
    }
    for (std::size_t s = 1; s < slice_begin_.size(); ++s) slice_begin_[s] += slice_begin_[s - 1];
    sliced_.resize(n);
    auto next = slice_begin_;
    for (std::size_t i = 0; i < n; ++i) sliced_[next[slice[i]]++] = static_cast<std::uint32_t>(i);
}

void Selection::grow_slice(std::size_t slice) {
    alive_.clear();
    for (std::size_t i = slice_begin_[slice]; i < slice_begin_[slice + 1]; ++i)
        if (state_[sliced_[i]] != kSuppressed) alive_.push_back(sliced_[i]);
    constexpr std::size_t kChunk = 1024;
    candidates_.resize(alive_.size());
    suppressed_.resize((alive_.size() + kChunk - 1) / kChunk);
    for_each_chunk(alive_.size(), kChunk, cancel_, [&](std::size_t begin, std::size_t end) {
        Worker& w = workers_.local();
        const std::size_t chunk = begin / kChunk;
        suppressed_[chunk].clear();
        w.points.assign(alive_.begin() + static_cast<std::ptrdiff_t>(begin),
                        alive_.begin() + static_cast<std::ptrdiff_t>(end));
        w.slots.resize(w.points.size());
        std::iota(w.slots.begin(), w.slots.end(), begin);
        grow_chunk(w, chunk, near_reaches_);
        grow_chunk(w, chunk, settings_.reaches);
    });
}

/// Grows the points of the worker into their slots of `candidates_`; those still open stay in the worker.
void Selection::grow_chunk(Worker& w, std::size_t chunk, const std::array<Reach, 6>& reaches) {
    Grower grower({cloud_, surface_, edge_, settings_, observe_, discs_});
    std::vector<std::uint32_t>& suppressed = suppressed_[chunk];
    find_neighbours(index_, {w.points, surface_.reach_class, reaches}, w.lists, w.scratch);
    std::size_t open = 0;
    for (std::size_t q = 0; q < w.points.size(); ++q) {
        const std::uint32_t point = w.points[q];
        const std::uint8_t reach_class = surface_.reach_class[point];
        const std::size_t first = w.lists.begin[q], count = w.lists.count[q];
        const bool whole = reaches[reach_class] == settings_.reaches[reach_class] ||
                           count < static_cast<std::size_t>(reaches[reach_class].k);
        const Neighbourhood n{{w.lists.point.data() + first, count},
                              {w.lists.distance2.data() + first, count},
                              w.lists.reach2[q],
                              whole};
        Candidate& c = candidates_[w.slots[q]];
        c.point = point;
        c.priority = priority_[point];
        c.chunk = static_cast<std::uint32_t>(chunk);
        c.suppressed_begin = static_cast<std::uint32_t>(suppressed.size());
        c.growth = grower.grow(point, n, suppressed);
        c.suppressed_count = static_cast<std::uint32_t>(suppressed.size()) - c.suppressed_begin;
        if (c.growth.fate == Growth::Fate::open) w.points[open] = point, w.slots[open++] = w.slots[q];
    }
    w.points.resize(open), w.slots.resize(open);
}

/// States only ever move up: open, maybe suppressed, suppressed. Points that were settled before are not
/// looked at again.
void Selection::mark(const Candidate& c, State state) {
    const std::vector<std::uint32_t>& suppressed = suppressed_[c.chunk];
    for (std::uint32_t i = 0; i < c.suppressed_count; ++i) {
        std::uint8_t& s = state_[suppressed[c.suppressed_begin + i]];
        s = std::max<std::uint8_t>(s, state);
    }
}

void Selection::settle_slice() {
    std::sort(candidates_.begin(), candidates_.end(), [&](const Candidate& a, const Candidate& b) {
        if (a.priority != b.priority) return a.priority < b.priority;
        return cloud_.rank[a.point] < cloud_.rank[b.point];
    });
    for (const Candidate& c : candidates_) {
        const std::uint8_t state = state_[c.point];
        if (state == kSuppressed || c.growth.fate == Growth::Fate::none) continue;
        if (c.growth.fate == Growth::Fate::unknown || state == kMaybeSuppressed) {
            result_.unknown.push_back(c.point);
            mark(c, kMaybeSuppressed);
        } else {
            result_.splats.push_back(c.growth.splat);
            mark(c, kSuppressed);
        }
    }
}

}  // namespace

Generation select_splats(const SelectionInput& input, const CancelToken& cancel) {
    return Selection(input, cancel).run();
}

}  // namespace citysplat::splat
