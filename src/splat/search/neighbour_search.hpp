#pragma once

#include "core/math/vec_hd.hpp"
#include "splat/search/neighbour_index.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

/// Exact neighbour search for many queries at once.
///
/// Queries that are close on the curve share one list of candidates, gathered from the index around their
/// common box. A query counts the candidates below a few distance thresholds, many at a time, until the
/// threshold holds just its neighbours; no heap, no sorting. Thresholds and radii of the boxes start from
/// what the previous queries needed, which changes the speed and never the result.
///
/// Equally distant candidates at the last place are settled by rank. All distances are exact integers
/// (lattice steps squared), all sums are exact, and every instruction set gives the same bits.
namespace citysplat::splat {

/// The neighbourhood of a query: the smaller of its k nearest points and the ball of `radius` steps, the
/// query itself included.
struct Reach {
    std::int32_t k;
    std::int32_t radius;  ///< from 1 to kMaxReach

    friend bool operator==(const Reach&, const Reach&) = default;
};
/// 5 m: the square fits an int32.
inline constexpr std::int32_t kMaxReach = 40960;

/// Sums over a neighbourhood of d = neighbour − query, in lattice steps. They are whole numbers below 2⁵³.
struct Moments {
    double sum_x, sum_y, sum_z;
    double sum_xx, sum_yy, sum_zz, sum_xy, sum_xz, sum_yz;
    std::int32_t count;
    /// Square of the distance within which a point that was not there would have changed the neighbourhood:
    /// that of the k-th neighbour, or of the ball when it holds fewer than k.
    std::uint32_t reach2;

    void add(Vec3d d) {
        sum_x += d.x, sum_y += d.y, sum_z += d.z;
        sum_xx += d.x * d.x, sum_yy += d.y * d.y, sum_zz += d.z * d.z;
        sum_xy += d.x * d.y, sum_xz += d.x * d.z, sum_yz += d.y * d.z;
        ++count;
    }
    Vec3d sum() const { return {sum_x, sum_y, sum_z}; }
    /// Sum of (d·a)(d·b).
    double sum_of_products(Vec3d a, Vec3d b) const {
        return dot(
            a, Vec3d{sum_xx * b.x + sum_xy * b.y + sum_xz * b.z, sum_xy * b.x + sum_yy * b.y + sum_yz * b.z,
                     sum_xz * b.x + sum_yz * b.y + sum_zz * b.z});
    }
};

/// Queries are points of the index, ascending; `reach_class[i]` chooses the entry of `reaches` for point i.
struct QueryBatch {
    std::span<const std::uint32_t> points;
    std::span<const std::uint8_t> reach_class;
    std::span<const Reach> reaches;
    /// Moments::reach2 of point i, when an earlier search found it; may be empty. Saves the search for it;
    /// another number costs time and changes nothing.
    std::span<const std::uint32_t> reach2{};
};

/// The neighbours of one query, unordered: which, how far, and where from the query (whole numbers of steps).
/// A whole vector beyond the last of each column may be read.
struct Neighbours {
    std::span<const std::uint32_t> point;
    const std::uint32_t* distance2;
    const float *x, *y, *z;
    std::uint32_t reach2;  ///< as in Moments

    std::size_t size() const { return point.size(); }
    Vec3d offset(std::size_t i) const {
        return {static_cast<double>(x[i]), static_cast<double>(y[i]), static_cast<double>(z[i])};
    }
};

/// The neighbours of the queries of a batch.
struct NeighbourLists {
    Neighbours operator[](std::size_t query) const {
        const std::size_t first = begin[query];
        return {{point.data() + first, count[query]},
                distance2.data() + first,
                x.data() + first,
                y.data() + first,
                z.data() + first,
                reach2[query]};
    }

    std::vector<std::uint32_t> begin, count, reach2;  ///< per query
    std::vector<std::uint32_t> point, distance2;      ///< per neighbour
    std::vector<float> x, y, z;
};

/// Buffers of one thread; also remembers what the last queries needed.
class SearchScratch {
  public:
    SearchScratch();
    ~SearchScratch();
    SearchScratch(SearchScratch&&) noexcept;
    SearchScratch& operator=(SearchScratch&&) noexcept;

    struct Buffers;
    Buffers& buffers() { return *buffers_; }

  private:
    std::unique_ptr<Buffers> buffers_;
};

/// Requires out.size() == batch.points.size().
void find_moments(const NeighbourIndex& index, const QueryBatch& batch, std::span<Moments> out,
                  SearchScratch& scratch);
/// Replaces `out`.
void find_neighbours(const NeighbourIndex& index, const QueryBatch& batch, NeighbourLists& out,
                     SearchScratch& scratch);

/// Name of the instruction set in use.
std::string_view instruction_set();

}  // namespace citysplat::splat
