// Compiled once per instruction set by neighbour_search.cpp, hence without include guard.
// The search itself: from candidates to the neighbours of each query, group by group.
#include "splat/search/search_places_inl.hpp"

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

/// A group whose candidates outnumber this is cut in two: scanning a long list for each query costs more than
/// gathering two shorter ones.
constexpr std::size_t kManyCandidates = 640;
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
/// Boxes wider than this (512 m) are cut too: places relative to the box must stay exact in float.
constexpr std::int32_t kWideBox = 1 << 22;
/// Queries that share a list of leaves.
constexpr std::size_t kRun = 256;

/// The largest exact squared distance up to which no point is missed when everything below the float distance
/// sqrt(radius2) was gathered.
inline std::int32_t trusted(float radius2) {
    return static_cast<std::int32_t>(std::min(radius2 * (1.0f - 0x1.0p-20f), 0x1.0p30f * 1.9f));
}

/// Which survivors are the neighbours: the `count` within `within2`, and `ties` of those at exactly `tie2`.
struct Cut {
    std::int32_t within2, count, tie2, ties;

    std::uint32_t reach2(const Reach& reach, const Buffers& b) const {
        if (count + ties < reach.k) return static_cast<std::uint32_t>(reach.radius * reach.radius);
        return ties > 0 ? static_cast<std::uint32_t>(tie2) : last_within(b, within2);
    }
};

/// The k nearest of the survivors. Requires more than k of them within `high2`.
inline Cut cut_at(const Buffers& b, std::int32_t k, std::int32_t high2, std::int32_t high_count) {
    std::int32_t low2 = -1, low_count = 0;
    for (int pass = 0; high2 - low2 > 1; ++pass) {
        // Points on a surface: their number grows with the square of the distance. The guess is off by a few
        // points at first, by one or so later; should that not help, quarters do.
        const auto gap = static_cast<float>(high2 - low2);
        const float a_point = gap / static_cast<float>(high_count - low_count);
        const bool guess = pass < 8;
        const float middle = guess ? a_point * (static_cast<float>(k - low_count) + 0.5f) : 0.5f * gap;
        const float aside = guess ? a_point * (pass == 0 ? 3.0f : 1.0f) : 0.25f * gap;
        ThreeLimits t{};
        for (int i = 0; i < 3; ++i)
            t.limit2[i] =
                std::clamp(low2 + static_cast<std::int32_t>(middle + static_cast<float>(i - 1) * aside),
                           low2 + 1, high2 - 1);
        count_within(b, t);
        for (int i = 0; i < 3; ++i) {
            if (t.count[i] == k) return {t.limit2[i], k, 0, 0};
            if (t.count[i] > k) {
                high2 = t.limit2[i], high_count = t.count[i];
                break;
            }
            low2 = t.limit2[i], low_count = t.count[i];
        }
    }
    return {low2, low_count, high2, k - low_count};
}

/// Whose neighbours are asked for, and how far.
struct Query {
    std::size_t slot;     ///< in the batch
    std::uint32_t point;  ///< in the index
    QueryPlace place;
    const Reach& reach;
    std::uint32_t expected2;  ///< QueryBatch::reach2; 0: unknown
};

/// What a query found; false when the candidates do not reach far enough to tell.
template <class Places, bool kWithPoints>
HWY_INLINE bool select(const Query& query, float gathered2, float& last_distance2, Buffers& b, Cut& cut) {
    const QueryPlace& q = query.place;
    const Reach& reach = query.reach;
    const std::int32_t ball2 = reach.radius * reach.radius;
    const std::int32_t most2 = std::min(trusted(gathered2), ball2);
    const auto capped = [&](float limit2) {
        return limit2 >= static_cast<float>(most2) ? most2 : static_cast<std::int32_t>(limit2);
    };
    std::int32_t limit2 = query.expected2 > 0
                              ? static_cast<std::int32_t>(std::min<std::int64_t>(query.expected2, most2))
                          : last_distance2 > 0 ? capped(last_distance2 * 1.35f + 1.0f)
                                               : most2;
    for (;;) {
        const std::int32_t n = Places::template filter<kWithPoints>(q, limit2, b);
        if (n >= reach.k || limit2 == ball2) {
            Places::measure(b);
            cut = n > reach.k ? cut_at(b, reach.k, limit2, n) : Cut{limit2, n, 0, 0};
            break;
        }
        if (limit2 == most2) return false;
        const float growth =
            std::clamp(1.3f * static_cast<float>(reach.k) / static_cast<float>(std::max(n, 1)), 1.3f, 4.0f);
        limit2 = capped(static_cast<float>(limit2) * growth + 1.0f);
    }
    last_distance2 = static_cast<float>(std::max(cut.tie2, cut.within2));
    return true;
}

/// Of the candidates at exactly `cut.tie2`, the first `cut.ties` by rank.
template <class Places>
std::vector<std::uint32_t> settle_ties(const NeighbourIndex& index, const QueryPlace& q, const Cut& cut,
                                       const Buffers& b) {
    std::vector<std::uint32_t> tied;
    for (std::size_t i = 0; i < b.candidates; ++i)
        if (Places::distance2(b, i, q) == cut.tie2) tied.push_back(b.candidate_point.data()[i]);
    const auto by_rank = [&](std::uint32_t a, std::uint32_t c) { return index.rank()[a] < index.rank()[c]; };
    std::nth_element(tied.begin(), tied.begin() + (cut.ties - 1), tied.end(), by_rank);
    tied.resize(static_cast<std::size_t>(cut.ties));
    return tied;
}

/// Writes moments.
struct MomentsSink {
    static constexpr bool kWithPoints = false;
    const NeighbourIndex& index;
    std::span<Moments> out;

    template <class Places>
    HWY_INLINE void found(const Query& query, const Cut& cut, const Buffers& b) {
        const auto& [slot, point, q, reach, expected2] = query;
        Moments m{};
        Places::sum(b, cut.within2, m);
        if (cut.ties > 0) add_ties(settle_ties<Places>(index, q, cut, b), point, m);
        m.count = cut.count + cut.ties;
        m.reach2 = cut.reach2(reach, b);
        out[slot] = m;
    }
    void add_ties(const std::vector<std::uint32_t>& tied, std::uint32_t point, Moments& m) {
        for (const std::uint32_t t : tied) {
            m.add({static_cast<double>(index.x()[t] - index.x()[point]),
                   static_cast<double>(index.y()[t] - index.y()[point]),
                   static_cast<double>(index.z()[t] - index.z()[point])});
        }
    }
};

/// Appends neighbours to lists.
struct ListsSink {
    static constexpr bool kWithPoints = true;
    const NeighbourIndex& index;
    NeighbourLists& out;
    std::size_t used = 0;

    template <class Places>
    HWY_INLINE void found(const Query& query, const Cut& cut, const Buffers& b) {
        const auto& [slot, point, q, reach, expected2] = query;
        const std::size_t begin = used;
        make_room(used + b.survivors + static_cast<std::size_t>(cut.ties) + 2 * kGroup);
        used += Places::list(b, cut.within2, at(used));
        if (cut.ties > 0)
            for (const std::uint32_t t : settle_ties<Places>(index, q, cut, b)) {
                const ListColumns to = at(used++);
                *to.point = t, *to.distance2 = static_cast<std::uint32_t>(cut.tie2);
                *to.x = static_cast<float>(index.x()[t] - index.x()[point]);
                *to.y = static_cast<float>(index.y()[t] - index.y()[point]);
                *to.z = static_cast<float>(index.z()[t] - index.z()[point]);
            }
        out.begin[slot] = static_cast<std::uint32_t>(begin);
        out.count[slot] = static_cast<std::uint32_t>(used - begin);
        out.reach2[slot] = cut.reach2(reach, b);
    }
    void make_room(std::size_t n) {
        if (out.point.size() < n) resize(2 * n);
    }
    void resize(std::size_t n) {
        out.point.resize(n), out.distance2.resize(n);
        out.x.resize(n), out.y.resize(n), out.z.resize(n);
    }
    ListColumns at(std::size_t i) const {
        return {out.point.data() + i, out.distance2.data() + i, out.x.data() + i, out.y.data() + i,
                out.z.data() + i};
    }
};

template <class Sink>
class Search {
  public:
    Search(const NeighbourIndex& index, const QueryBatch& batch, Buffers& b, Sink& sink)
        : index_(index), batch_(batch), b_(b), sink_(sink) {}

    void run() {
        const std::size_t n = batch_.points.size();
        for (std::size_t first = 0; first < n;) {
            const std::size_t end = list_run(first);
            for (; first < end; first += kGroup) search_group(first);
            first = end;
        }
    }

  private:
    /// Part of a group: queries first + (bits of todo), with how far to gather.
    struct Work {
        std::size_t first;
        unsigned todo;
        float radius2;
        float too_much2;  ///< known to deliver too many candidates; 0: any number is taken
    };

    std::uint32_t expected2(std::uint32_t point) const {
        return batch_.reach2.empty() ? 0 : batch_.reach2[point];
    }

    /// How far to gather for a point: just as far as is known, or `more` than the last group needed.
    float wanted_radius2(std::uint32_t point, float more) const {
        const auto with_slack = [](float r2) { return r2 * (1.0f + 0x1.0p-18f) + 2.0f; };
        const std::uint8_t reach_class = batch_.reach_class[point];
        const auto r = static_cast<float>(batch_.reaches[reach_class].radius);
        const std::uint32_t known2 = expected2(point);
        return std::min(with_slack(r * r), known2 > 0 ? with_slack(static_cast<float>(known2))
                                                      : b_.group_distance2[reach_class] * more + 2.0f);
    }

    /// Lists the leaves around the next queries, as many as share a list of bearable length; returns where
    /// they end.
    std::size_t list_run(std::size_t first) {
        for (std::size_t length = kRun;; length /= 2) {
            const std::size_t end = std::min(batch_.points.size(), first + length);
            QueryBox box;
            float radius2 = 0;
            for (std::size_t i = first; i < end; ++i) {
                box.add(index_, batch_.points[i]);
                radius2 = std::max(radius2, wanted_radius2(batch_.points[i], 1.6f));
            }
            listed2_ = 0;
            if (box.extent() <= kWideBox && list_leaves(index_, box, radius2, b_)) listed2_ = radius2;
            if (listed2_ > 0 || length == kGroup) return end;
        }
    }

    void search_group(std::size_t first) {
        const std::size_t n = std::min(kGroup, batch_.points.size() - first);
        float radius2 = 0;
        unsigned classes = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t point = batch_.points[first + i];
            classes |= 1u << batch_.reach_class[point];
            radius2 = std::max(radius2, wanted_radius2(point, 1.25f));
        }
        for (std::size_t c = 0; c < Buffers::kMaxClasses; ++c)
            if (classes >> c & 1u) b_.group_distance2[c] = 0;
        if (listed2_ > 0) radius2 = std::min(radius2, listed2_);
        work_.push_back({first, (1u << n) - 1, radius2, 1e30f});
        while (!work_.empty()) {
            const Work w = work_.back();
            work_.pop_back();
            search_part(w);
        }
    }

    void search_part(const Work& w) {
        QueryBox box;
        for (unsigned t = w.todo; t != 0; t &= t - 1) box.add(index_, batch_.points[slot_of(w, t)]);
        const int queries = __builtin_popcount(w.todo);
        // One query that needs more candidates than are good for it gets them all in the end.
        const bool narrowing = w.too_much2 - w.radius2 > 1.0f && w.radius2 > 4.0f;
        const std::size_t limit = queries > 1 ? kManyCandidates : narrowing ? 8 * kManyCandidates : kNoLimit;
        const auto most = static_cast<float>(NearPlaces::kMost - std::min(box.extent(), NearPlaces::kMost));
        if (w.radius2 < most * most && limit < NearPlaces::kMostCandidates)
            search_box<NearPlaces>(w, box, limit);
        else if (box.extent() > kWideBox && queries > 1)
            split(w);
        else
            search_box<WidePlaces>(w, box, limit);
    }

    template <class Places>
    void search_box(const Work& w, const QueryBox& box, std::size_t limit) {
        gather<Places>(index_, {box, w.radius2, w.radius2 <= listed2_, limit}, b_);
        if (b_.candidates > limit) {
            if ((w.todo & (w.todo - 1)) == 0)
                work_.push_back({w.first, w.todo, w.radius2 * 0.3f, w.radius2});
            else
                split(w);
            return;
        }
        unsigned failed = 0;
        for (unsigned t = w.todo; t != 0; t &= t - 1) {
            const std::size_t slot = slot_of(w, t);
            const std::uint32_t p = batch_.points[slot];
            const std::uint8_t c = batch_.reach_class[p];
            const Query query{
                slot,
                p,
                {index_.x()[p] - box.min_x, index_.y()[p] - box.min_y, index_.z()[p] - box.min_z},
                batch_.reaches[c],
                expected2(p)};
            float& last2 = b_.last_distance2[c];
            Cut cut;
            if (select<Places, Sink::kWithPoints>(query, w.radius2, last2, b_, cut)) {
                b_.group_distance2[c] = std::max(b_.group_distance2[c], last2);
                sink_.template found<Places>(query, cut, b_);
            } else {
                failed |= t & (~t + 1);
            }
        }
        if (failed != 0) {
            const float too_much2 = limit == kNoLimit ? 0.0f : w.too_much2;
            float wider2 = w.radius2 * 2.0f + 4.0f;
            if (too_much2 > 0 && wider2 >= too_much2) wider2 = 0.5f * (w.radius2 + too_much2);
            work_.push_back({w.first, failed, wider2, too_much2});
        }
    }

    void split(const Work& w) {
        unsigned half = 0, rest = w.todo;
        for (int i = __builtin_popcount(w.todo) / 2; i > 0; --i) half |= rest & (~rest + 1), rest &= rest - 1;
        work_.push_back({w.first, rest, w.radius2, w.too_much2});
        work_.push_back({w.first, half, w.radius2, w.too_much2});
    }

    static std::size_t slot_of(const Work& w, unsigned todo) {
        return w.first + static_cast<std::size_t>(__builtin_ctz(todo));
    }

    const NeighbourIndex& index_;
    const QueryBatch& batch_;
    Buffers& b_;
    Sink& sink_;
    std::vector<Work> work_;
    float listed2_ = 0;  ///< the listed leaves reach this far; 0: there is no list
};

inline void search_moments(const NeighbourIndex& index, const QueryBatch& batch, std::span<Moments> out,
                           Buffers& b) {
    MomentsSink sink{index, out};
    Search<MomentsSink>(index, batch, b, sink).run();
}

inline void search_lists(const NeighbourIndex& index, const QueryBatch& batch, NeighbourLists& out,
                         Buffers& b) {
    const std::size_t n = batch.points.size();
    out.begin.assign(n, 0), out.count.assign(n, 0), out.reach2.assign(n, 0);
    ListsSink sink{index, out};
    Search<ListsSink>(index, batch, b, sink).run();
    sink.resize(sink.used + kGroup);
}

inline const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::splat
HWY_AFTER_NAMESPACE();
