#pragma once

#include "core/math/vec_hd.hpp"
#include "splat/generation/surface.hpp"
#include "splat/search/search_buffers.hpp"

#include <cstdint>
#include <limits>
#include <span>

/// What growth asks of all neighbours of a seed, many of them at a time. Every instruction set gives the same
/// bits: decisions are made in float, operation by operation, and sums are of whole numbers, exact in double.
namespace citysplat::splat {

/// The neighbour that stops the growth. In the order of (distance, rank) all neighbours before it belong to
/// the splat, it and all behind it do not. Those that are as far as it and not before it are marked in the
/// columns.
struct Stop {
    static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
    std::int32_t distance2 = kNever;

    bool exists() const { return distance2 != kNever; }
};

/// When a neighbour stops the growth (figure 3 of the paper).
struct StopRule {
    Vec3f normal;        ///< of the seed
    float error;         ///< most |ε|, in steps
    float least_cosine;  ///< between the normals
};

/// Over the members of a splat, of d = member − seed.
struct MemberSums {
    Moments moments;
    Vec3d last;  ///< d of the farthest
};

/// Where a disc keeps points from being seeds.
struct SuppressedPart {
    Vec3f centre, normal;  ///< of the disc, from the seed
    float inside2;         ///< square of the distance from the centre, in the plane of the disc
    std::int32_t reach2;   ///< and from the seed
};

/// Points, one after the other, that are written a vector at a time: what is beyond the end has no value.
class PointList {
  public:
    std::size_t size() const { return size_; }
    std::span<const std::uint32_t> points() const { return {column_.data(), size_}; }
    void resize(std::size_t size) { size_ = size; }  ///< not beyond what was written
    void push_back(std::uint32_t point) { *room(1) = point, ++size_; }
    /// Where the next points go: room for n of them and a vector more.
    std::uint32_t* room(std::size_t n) {
        column_.reserve(size_ + n, size_);
        return column_.data() + size_;
    }

  private:
    Column<std::uint32_t> column_;
    std::size_t size_ = 0;
};

/// What is found out about the neighbours of one seed, as columns.
struct GrowthColumns {
    Column<std::int32_t> first_word, second_word;  ///< of their SurfaceBrief
    Column<std::int32_t> member2;  ///< squared distances, but Stop::kNever for what is passed over
    Column<std::int32_t> stop2;    ///< squared distances, but Stop::kNever for what stops nothing
    /// What the members of a splat saw.
    Column<float> to_sensor_x, to_sensor_y, to_sensor_z, range;
    Column<std::uint16_t> intensity;
};

/// Where growth happens.
struct GrowthSite {
    std::span<const SurfaceBrief> brief;
    std::span<const std::uint32_t> rank;
};

/// What the members of a splat saw: whole numbers.
struct Observations {
    std::uint16_t intensity;           ///< lower median
    std::int32_t seen, range, cosine;  ///< members with a sensor; sums over them, cosines in 1/65536
};

struct GrowthLanes {
    /// Fills the columns and finds the nearest neighbour that stops the growth.
    Stop (*find_stop)(const GrowthSite& site, SurfaceBrief seed, const Neighbours& n, const StopRule& rule,
                      GrowthColumns& c);
    /// Appends the neighbours before the stop.
    MemberSums (*find_members)(const GrowthSite& site, const Neighbours& n, const Stop& stop,
                               const GrowthColumns& c, PointList& members);
    /// Appends the neighbours in the part of the disc, nearer than the stop.
    void (*suppress)(const Neighbours& n, const Stop& stop, const SuppressedPart& part,
                     PointList& suppressed);
    /// Requires a member, and at most 65535 of them.
    Observations (*observe)(std::span<const PointAttributes> attributes,
                            std::span<const std::uint32_t> members, Vec3f normal, GrowthColumns& c);
};

/// For the instruction set of this machine.
GrowthLanes growth_lanes();

}  // namespace citysplat::splat
