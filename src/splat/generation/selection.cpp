#include "splat/generation/selection.hpp"

#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"
#include "core/prefetch.hpp"
#include "splat/search/curve.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace citysplat::splat {
namespace {

/// Shares of the priority range, highest first. Early slices are small because each splat accepted there
/// spares the growth of those it suppresses.
constexpr std::array<double, 5> kSliceEnds{0.04, 0.12, 0.28, 0.55, 1.0};

/// Points that are grown together.
constexpr std::size_t kChunk = 1024;

enum State : std::uint8_t { kOpen = 0, kMaybeSuppressed = 1, kSuppressed = 2 };

/// A point that was grown, with its place in the order and what it would suppress.
struct Candidate {
    std::uint64_t priority;
    Growth growth;
    std::uint32_t point;
    std::uint32_t chunk;
    std::uint32_t suppressed_begin, suppressed_count, members_begin, members_count;
    std::uint32_t slot;  ///< in the result once accepted
};
constexpr std::uint32_t kNoSlot = ~0u;

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
          cancel_(cancel) {}

    Generation run() {
        slice_points();
        for (std::size_t s = 0; s < kSliceEnds.size(); ++s) {
            grow_slice(s);
            settle_slice();
            observe_slice();
        }
        return std::move(result_);
    }

  private:
    std::uint8_t prepare(std::size_t i);
    void slice_points();
    void grow_slice(std::size_t slice);
    void fetch_ahead(std::uint32_t point, const Neighbours& neighbours) const;
    void sort_candidates();
    void settle_slice();
    void fetch_settling(std::size_t i) const;
    void observe_slice();
    void mark(const Candidate& c, State state);

    struct Worker {
        SearchScratch scratch;
        NeighbourLists lists;
    };
    void grow_chunk(Worker& worker, std::size_t begin, std::size_t end);

    const PointCloud& cloud_;
    const NeighbourIndex& index_;
    const Surface& surface_;
    const CoveredEdge& edge_;
    const GenerationSettings& settings_;
    const bool observe_;
    const std::span<const FirstDisc> discs_;
    const CancelToken& cancel_;
    const GrowthLanes lanes_ = growth_lanes();
    const std::int64_t widest_suppression_ = settings_.widest_suppression();
    std::vector<std::uint64_t> priority_;
    std::vector<std::uint8_t> state_;
    std::vector<std::uint32_t> sliced_;  ///< points by slice, along the curve within a slice
    std::array<std::size_t, kSliceEnds.size() + 1> slice_begin_{};

    tbb::enumerable_thread_specific<Worker> workers_;
    std::vector<std::uint32_t> alive_;
    std::vector<Candidate> candidates_;
    /// What the candidates of a chunk of the slice would suppress, and the points they are made of.
    struct Chunk {
        PointList suppressed, members;
    };
    std::vector<Chunk> chunks_;
    std::vector<KeyedIndex> order_;  ///< candidates in descending priority
    Generation result_;
};

/// Finds the slice of point i and what its place alone says about its state.
std::uint8_t Selection::prepare(std::size_t i) {
    priority_[i] = priority_of(cloud_.world(i));
    // A splat outside what was read may suppress points near the edge.
    const bool near_edge = edge_.distance(cloud_.x[i], cloud_.y[i]) <= widest_suppression_;
    const bool gone = surface_.brief[i].outlier() && surface_.brief[i].known();
    state_[i] = gone ? kSuppressed : near_edge ? kMaybeSuppressed : kOpen;
    const double share = static_cast<double>(priority_[i] >> 11) * 0x1.0p-53;
    int slice = 0;
    for (const double end : kSliceEnds) slice += end <= share;
    return static_cast<std::uint8_t>(slice);
}

void Selection::slice_points() {
    constexpr std::size_t kPart = 1 << 15;
    const std::size_t n = cloud_.size();
    priority_.resize(n), state_.resize(n), sliced_.resize(n);
    std::vector<std::uint8_t> slice(n);
    using Counts = std::array<std::size_t, kSliceEnds.size()>;
    std::vector<Counts> next((n + kPart - 1) / kPart, Counts{});
    for_each_chunk(n, kPart, cancel_, [&](std::size_t begin, std::size_t end) {
        const StageTimes::Timer timer(settings_.times, Stage::order);
        for (std::size_t i = begin; i < end; ++i) ++next[begin / kPart][slice[i] = prepare(i)];
    });
    std::size_t total = 0;
    for (std::size_t s = 0; s < kSliceEnds.size(); ++s) {
        for (Counts& c : next) total += std::exchange(c[s], total);
        slice_begin_[s + 1] = total;
    }
    for_each_chunk(n, kPart, cancel_, [&](std::size_t begin, std::size_t end) {
        const StageTimes::Timer timer(settings_.times, Stage::order);
        for (std::size_t i = begin; i < end; ++i)
            sliced_[next[begin / kPart][slice[i]]++] = static_cast<std::uint32_t>(i);
    });
}

void Selection::grow_slice(std::size_t slice) {
    alive_.clear();
    for (std::size_t i = slice_begin_[slice]; i < slice_begin_[slice + 1]; ++i)
        if (state_[sliced_[i]] != kSuppressed) alive_.push_back(sliced_[i]);
    candidates_.resize(alive_.size());
    chunks_.resize((alive_.size() + kChunk - 1) / kChunk);
    for_each_chunk(alive_.size(), kChunk, cancel_,
                   [&](std::size_t begin, std::size_t end) { grow_chunk(workers_.local(), begin, end); });
}

/// Asks for what growing a point will read: neighbours lie anywhere in memory.
void Selection::fetch_ahead(std::uint32_t point, const Neighbours& neighbours) const {
    prefetch(&cloud_.attributes[point]);
    prefetch(&priority_[point]);
    prefetch(&surface_.normal[point]);
    for (const std::uint32_t p : neighbours.point) prefetch(&surface_.brief[p]);
}

void Selection::grow_chunk(Worker& w, std::size_t begin, std::size_t end) {
    const std::size_t chunk = begin / kChunk;
    auto& [suppressed, members] = chunks_[chunk];
    suppressed.resize(0), members.resize(0);
    const std::span<const std::uint32_t> points(alive_.data() + begin, end - begin);
    {
        const StageTimes::Timer timer(settings_.times, Stage::growth_search);
        find_neighbours(index_, {points, surface_.reach_class, settings_.reaches, surface_.reach2}, w.lists,
                        w.scratch);
    }
    const StageTimes::Timer timer(settings_.times, Stage::growth);
    Grower grower({cloud_, surface_, edge_, settings_, observe_, discs_, lanes_});
    for (std::size_t q = 0; q < points.size(); ++q) {
        if (q + 1 < points.size()) fetch_ahead(points[q + 1], w.lists[q + 1]);
        Candidate& c = candidates_[begin + q];
        c.point = points[q];
        c.slot = kNoSlot;
        c.priority = priority_[c.point];
        c.chunk = static_cast<std::uint32_t>(chunk);
        c.suppressed_begin = static_cast<std::uint32_t>(suppressed.size());
        c.members_begin = static_cast<std::uint32_t>(members.size());
        c.growth = grower.grow(c.point, w.lists[q], suppressed, members);
        c.suppressed_count = static_cast<std::uint32_t>(suppressed.size()) - c.suppressed_begin;
        c.members_count = static_cast<std::uint32_t>(members.size()) - c.members_begin;
    }
}

/// States only ever move up: open, maybe suppressed, suppressed. Points that were settled before are not
/// looked at again.
void Selection::mark(const Candidate& c, State state) {
    const std::span<const std::uint32_t> suppressed = chunks_[c.chunk].suppressed.points();
    for (std::uint32_t i = 0; i < c.suppressed_count; ++i) {
        std::uint8_t& s = state_[suppressed[c.suppressed_begin + i]];
        s = std::max<std::uint8_t>(s, state);
    }
}

/// Asks for what settling will read soon: the order is random by design.
void Selection::fetch_settling(std::size_t i) const {
    constexpr std::size_t kFar = 16, kNear = 8, kNext = 3;
    if (i + kFar >= order_.size()) return;
    const auto* far = &candidates_[order_[i + kFar].index];
    prefetch(far);
    prefetch(reinterpret_cast<const char*>(far) + 64);
    const Candidate& near = candidates_[order_[i + kNear].index];
    prefetch(&state_[near.point]);
    prefetch(chunks_[near.chunk].suppressed.points().data() + near.suppressed_begin);
    const Candidate& next = candidates_[order_[i + kNext].index];
    const std::uint32_t* suppressed = chunks_[next.chunk].suppressed.points().data() + next.suppressed_begin;
    for (std::uint32_t s = 0; s < next.suppressed_count; s += 2) prefetch(&state_[suppressed[s]]);
}

/// Candidates that would be splats, or might be, by priority. Sorted by its upper bits, which hardly ever are
/// the same, and then by all that decides.
void Selection::sort_candidates() {
    constexpr int kBits = 30;
    order_.clear();
    for (std::uint32_t i = 0; i < candidates_.size(); ++i)
        if (candidates_[i].growth.fate != Growth::Fate::none)
            order_.push_back({candidates_[i].priority >> (64 - kBits), i});
    const auto before = [&](const KeyedIndex& e, const KeyedIndex& f) {
        const Candidate &a = candidates_[e.index], &b = candidates_[f.index];
        if (a.priority != b.priority) return a.priority < b.priority;
        return cloud_.rank[a.point] < cloud_.rank[b.point];
    };
    sort_by_key(order_, kBits, before);
}

void Selection::settle_slice() {
    const StageTimes::Timer timer(settings_.times, Stage::settling);
    sort_candidates();
    for (std::size_t i = 0; i < order_.size(); ++i) {
        if (i % kChunk == 0) cancel_.check();
        fetch_settling(i);
        Candidate& c = candidates_[order_[i].index];
        const std::uint8_t state = state_[c.point];
        if (state == kSuppressed) continue;
        if (c.growth.fate == Growth::Fate::unknown || state == kMaybeSuppressed) {
            result_.unknown.push_back(c.point);
            mark(c, kMaybeSuppressed);
        } else {
            c.slot = static_cast<std::uint32_t>(result_.splats.size());
            result_.splats.push_back(c.growth.splat);
            mark(c, kSuppressed);
        }
    }
}

/// Only what was accepted needs what its members saw. Along the curve, where members are close in memory.
void Selection::observe_slice() {
    for_each_chunk(candidates_.size(), kChunk, cancel_, [&](std::size_t begin, std::size_t end) {
        const StageTimes::Timer timer(settings_.times, Stage::observations);
        Grower grower({cloud_, surface_, edge_, settings_, observe_, discs_, lanes_});
        constexpr std::size_t kAhead = 3;
        const auto members_of = [&](const Candidate& c) {
            return chunks_[c.chunk].members.points().subspan(c.members_begin,
                                                             c.slot == kNoSlot ? 0 : c.members_count);
        };
        for (std::size_t i = begin; i < end; ++i) {
            if (i + kAhead < end && candidates_[i + kAhead].slot != kNoSlot) {
                const Candidate& ahead = candidates_[i + kAhead];
                prefetch(&result_.splats[ahead.slot]);
                for (const std::uint32_t p : members_of(ahead)) prefetch(&cloud_.attributes[p]);
            }
            const Candidate& c = candidates_[i];
            const std::span<const std::uint32_t> members = members_of(c);
            if (members.empty()) continue;
            SeededSplat& s = result_.splats[c.slot];
            grower.add_observations(members, s.splat, s.normal);
        }
    });
}

}  // namespace

std::uint64_t priority_of(const LatticePoint& p) {
    using rng::key;
    return key(key(key(0x5eed, static_cast<std::uint64_t>(p.x)), static_cast<std::uint64_t>(p.y)),
               static_cast<std::uint64_t>(p.z));
}

Generation select_splats(const SelectionInput& input, const CancelToken& cancel) {
    return Selection(input, cancel).run();
}

}  // namespace citysplat::splat
