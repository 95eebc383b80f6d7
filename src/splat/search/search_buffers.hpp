#pragma once

#include "splat/search/neighbour_search.hpp"

#include <hwy/aligned_allocator.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace citysplat::splat {

/// A growing column for vector stores. Writers may store up to kSlack elements past the size they asked for.
template <class T>
class Column {
  public:
    static constexpr std::size_t kSlack = 32;

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    /// Room for n elements and the slack; keeps the first `keep`.
    void reserve(std::size_t n, std::size_t keep) {
        if (n + kSlack <= capacity_) return;
        const std::size_t capacity = 2 * (n + kSlack);
        auto grown = hwy::AllocateAligned<T>(capacity);
        if (!grown) throw std::bad_alloc();
        if (keep > 0) std::memcpy(grown.get(), data_.get(), keep * sizeof(T));
        data_ = std::move(grown);
        capacity_ = capacity;
    }

  private:
    hwy::AlignedFreeUniquePtr<T[]> data_;
    std::size_t capacity_ = 0;
};

struct SearchScratch::Buffers {
    static constexpr std::size_t kMaxClasses = 8;

    /// Leaves around the current run of queries: boxes and numbers, with room for one vector more.
    static constexpr std::size_t kMaxLeaves = 512, kLeafRoom = kMaxLeaves + 48;
    alignas(64) std::int32_t leaf_min_x[kLeafRoom], leaf_min_y[kLeafRoom], leaf_min_z[kLeafRoom];
    alignas(64) std::int32_t leaf_max_x[kLeafRoom], leaf_max_y[kLeafRoom], leaf_max_z[kLeafRoom];
    alignas(64) std::uint32_t leaf[kLeafRoom];
    std::size_t leaves = 0;

    /// Candidates of the current group: place relative to the group's box, as 16-bit pairs (x, y), (z, place
    /// in this list) or as floats, and which point.
    Column<std::int32_t> candidate_xy, candidate_z_place;
    Column<float> candidate_x, candidate_y, candidate_z;
    Column<std::uint32_t> candidate_point;
    std::size_t candidates = 0;

    /// Those of them that are near the current query, below its threshold: differences, exact distances,
    /// which point.
    Column<std::int32_t> near_xy, near_z_place;
    Column<float> near_x, near_y, near_z;
    Column<std::uint32_t> near_point;
    Column<std::int32_t> near_distance2;
    std::size_t survivors = 0;

    /// By reach class: squared distance of the last neighbour of the last query (0 before the first), and the
    /// largest of the last group.
    std::array<float, kMaxClasses> last_distance2{};
    std::array<float, kMaxClasses> group_distance2;

    /// Room for n candidates, all of which may survive.
    void reserve_candidates(std::size_t n) {
        if (n + 16 <= room_) return;
        room_ = 2 * n + 16;
        candidate_xy.reserve(room_, candidates), candidate_z_place.reserve(room_, candidates);
        near_xy.reserve(room_, 0), near_z_place.reserve(room_, 0);
        candidate_x.reserve(room_, candidates), candidate_y.reserve(room_, candidates),
            candidate_z.reserve(room_, candidates);
        candidate_point.reserve(room_, candidates);
        near_x.reserve(room_, 0), near_y.reserve(room_, 0), near_z.reserve(room_, 0),
            near_point.reserve(room_, 0);
        near_distance2.reserve(room_, 0);
    }

    Buffers() { group_distance2.fill(1e30f); }

  private:
    std::size_t room_ = 0;
};

}  // namespace citysplat::splat
