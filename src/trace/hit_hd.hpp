#pragma once

#include "core/math/host_device.hpp"

#include <cstdint>

namespace citysplat::trace {

/// One meeting of a ray and a splat, with what the splat says, so that its tile may be evicted afterwards.
struct Hit {
    float t = 0;                 ///< decides the order: distance from lattice_origin(), float arithmetic
    std::uint32_t normal = 0;    ///< pack_normal()
    std::uint64_t splat_id = 0;  ///< model/splat_id_hd.hpp; 0: nothing was hit
    double range_m = 0;          ///< exact_range()
    std::uint16_t label = 0;
    std::uint16_t intensity = 0;
    std::uint8_t acquired_range_m = 255;    ///< Splat::range
    std::uint8_t acquired_incidence = 255;  ///< Splat::incidence
    std::uint16_t instance = 0;             ///< of the part (trace/part.hpp); 0: of the city

    CITYSPLAT_HD bool exists() const { return splat_id != 0; }
};
static_assert(sizeof(Hit) == 32);

/// What decides between hits of equal distance.
struct HitName {
    std::uint64_t id;
    std::uint16_t instance;
};
CITYSPLAT_HD inline bool operator<(const HitName& a, const HitName& b) {
    return a.id != b.id ? a.id < b.id : a.instance < b.instance;
}
CITYSPLAT_HD inline HitName name_of(const Hit& hit) { return {hit.splat_id, hit.instance}; }

/// The total order of the hits of one ray: distance, then id, then instance. Two tracers that see the same
/// discs agree on it whatever their traversal order and their tiles; hits of equal place in it are alike in
/// all that is reported. Requires hits that exist.
CITYSPLAT_HD inline bool comes_before(const Hit& a, const Hit& b) {
    return a.t != b.t ? a.t < b.t : name_of(a) < name_of(b);
}

inline constexpr int kMaxHits = 8;

/// The nearest hits of a ray in their total order. The nearest D of a union are the nearest D of the nearest
/// D of its parts, so tiles may come in any order and in several passes.
struct HitList {
    std::uint32_t count = 0;
    Hit hits[kMaxHits];
};

/// Whether two hits are on the same part, or both on the city.
CITYSPLAT_HD inline bool is_same_part(const Hit& a, const Hit& b) {
    return a.instance == b.instance && (a.instance == 0 || a.splat_id >> 32 == b.splat_id >> 32);
}

/// How many of `count` hits belong to the first surface of a ray (AdaSplats §6.3.4): consecutive hits of the
/// first one's class and part, no more than `gap_m` apart.
CITYSPLAT_HD inline std::uint32_t surface_depth(const Hit* hits, std::uint32_t count, float gap_m) {
    std::uint32_t n = count > 0 ? 1 : 0;
    while (n > 0 && n < count && hits[n].label == hits[0].label && is_same_part(hits[n], hits[0]) &&
           hits[n].t - hits[n - 1].t <= gap_m)
        ++n;
    return n;
}
CITYSPLAT_HD inline std::uint32_t surface_depth(const HitList& list, std::uint32_t depth, float gap_m) {
    return surface_depth(list.hits, list.count < depth ? list.count : depth, gap_m);
}

/// Range of the return from the first `n` hits, eq. 16: weights exp(−|i − n/2| / (n/2)) of eq. 17, with i
/// counted from 1 and D reset to n as the paper says. Requires n >= 1.
CITYSPLAT_HD inline double weighted_range(const Hit* hits, std::uint32_t n) {
    // exp(−|2i − n| / n) for i = 1 … n, row n. Written out: the C library's exp differs between machines.
    static constexpr double kWeight[kMaxHits][kMaxHits] = {
        {0.36787944117144233, 0, 0, 0, 0, 0, 0, 0},
        {1, 0.36787944117144233, 0, 0, 0, 0, 0, 0},
        {0.71653131057378927, 0.71653131057378927, 0.36787944117144233, 0, 0, 0, 0, 0},
        {0.60653065971263342, 1, 0.60653065971263342, 0.36787944117144233, 0, 0, 0, 0},
        {0.54881163609402639, 0.81873075307798182, 0.81873075307798182, 0.54881163609402639,
         0.36787944117144233, 0, 0, 0},
        {0.51341711903259202, 0.71653131057378927, 1, 0.71653131057378927, 0.51341711903259202,
         0.36787944117144233, 0, 0},
        {0.48954165955695317, 0.65143905753105558, 0.86687789975018159, 0.86687789975018159,
         0.65143905753105558, 0.48954165955695317, 0.36787944117144233, 0},
        {0.47236655274101469, 0.60653065971263342, 0.77880078307140487, 1, 0.77880078307140487,
         0.60653065971263342, 0.47236655274101469, 0.36787944117144233}};
    double sum = 0, weights = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        sum += kWeight[n - 1][i] * hits[i].range_m;
        weights += kWeight[n - 1][i];
    }
    return sum / weights;
}
CITYSPLAT_HD inline double weighted_range(const HitList& list, std::uint32_t n) {
    return weighted_range(list.hits, n);
}

}  // namespace citysplat::trace
