#pragma once

#include "core/math/vec_hd.hpp"
#include "cuda/device.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

/// Plays the part of the GPU's traversal: finds boxes along a ray and runs the intersection program for them,
/// in any order and more than once, as OptiX may. All arithmetic is float and the boxes are taken as tight as
/// they are: a program that relies on more than OptiX promises fails here first.
namespace citysplat::on_cpu {

struct Manners {
    std::uint64_t seed = 0;     ///< other seed, other order of traversal
    double ask_again = 0.2;     ///< probability of running an intersection program twice for a box
    bool nearest_first = true;  ///< otherwise children are visited in random order
};

/// Hierarchy over boxes; leaves hold a few primitives.
class BoxTree {
  public:
    explicit BoxTree(std::span<const gpu::DiscBox> boxes);

    struct Node {
        gpu::DiscBox box;
        std::uint32_t first, count;  ///< leaf: primitives; inner (count 0): `first` is the right child
    };
    std::span<const Node> nodes() const { return nodes_; }
    std::span<const gpu::DiscBox> boxes() const { return boxes_; }
    std::uint32_t primitive(std::uint32_t i) const { return order_[i]; }

  private:
    void build(std::uint32_t first, std::uint32_t count);

    std::vector<gpu::DiscBox> boxes_;
    std::vector<std::uint32_t> order_;
    std::vector<Node> nodes_;
};

/// An acceleration structure: exactly one of the two is filled.
struct Accel {
    std::unique_ptr<BoxTree> discs;
    std::vector<gpu::TileInstance> instances;
};

/// One optixTrace under way.
struct RayState {
    Vec3f origin, direction;
    float t_min, t_max;
    unsigned mask, hit_record;
    bool only_intersection;
    unsigned payload[gpu::kPayloadWords];
    unsigned instance_id, primitive;
    bool asked = false;  ///< inside the intersection program

    /// optixReportIntersection.
    bool report(float t, unsigned kind);
};

/// What the functions of the device API refer to.
struct Thread {
    unsigned launch_index = 0;
    RayState* ray = nullptr;
    Manners manners;
    std::uint64_t draws = 0;

    /// Throws std::logic_error outside an intersection program.
    RayState& in_intersection();
    double random();
};
Thread& current();

/// Where traversables point to. Throws std::logic_error when there is none (any more) at `traversable`.
const Accel& accel_at(std::uint64_t traversable);
/// What accel_at() finds at an address; `memory` has room for it.
void put_accel(std::byte* memory, std::shared_ptr<const Accel> accel);
void forget_accel(std::byte* memory);
std::shared_ptr<const Accel> share_accel(std::uint64_t traversable);

void trace(std::uint64_t scene, RayState& ray);

/// The shader binding table: intersection programs by hit record.
using Program = void (*)();
extern const Program kIntersectionPrograms[2];

}  // namespace citysplat::on_cpu
