#pragma once

#include "trace/groups/wide_tree.hpp"
#include "trace/packet.hpp"
#include "trace/part.hpp"
#include "trace/tile_frustum.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// Groups of up to 512 rays that go through the hierarchy together, in SIMD with run-time dispatch
/// (kernels.cpp).
///
/// A group looks along one axis of the world: that component of its directions has one sign. Seen from there
/// its rays are a beam: where they are after a way x along the axis lies between two straight lines in each
/// of the other two axes, whose slopes are the least and the largest of the rays', and which start at the
/// least and the largest of the origins. So a beam holds every point of every ray, also when the sensor moves
/// between them. Beams only propose; the disc test decides (ray_disc_hd.hpp).
namespace citysplat::trace {

inline constexpr unsigned kPacketRays = 16;
inline constexpr unsigned kGroupPackets = 32;
inline constexpr unsigned kGroupRays = kPacketRays * kGroupPackets;
static_assert(kPacketRays <= kMaxPacket);

/// Sixteen rays of a group. Lanes without a ray of their own repeat the last one and have a t_max below zero.
struct alignas(64) RayPacket {
    float direction[3][kPacketRays];
    float origin[3][kPacketRays];  ///< local_origin() in the tile that the packet is in
    float t_min[kPacketRays];
    /// Directions as the beam sees them: per metre along the axis, and metres along the axis per metre.
    float slope_b[kPacketRays], slope_c[kPacketRays], along[kPacketRays];
    double lattice[3][kPacketRays];     ///< lattice_origin()
    std::uint32_t number[kPacketRays];  ///< of the rays in the batch
    unsigned rays;
    bool is_in_tile;  ///< `origin` is that of the present tile
};

/// Beams, one in each column. A slope is kept as its positive and its negative part, one of which is 0: the
/// lowest place after a way from x0 to x1 ≥ x0 is then low_up · x0 + low_down · x1, whatever the signs.
template <unsigned kBeams>
struct Beams {
    alignas(64) float b_low_up[kBeams], b_low_down[kBeams], b_high_up[kBeams], b_high_down[kBeams];
    alignas(64) float c_low_up[kBeams], c_low_down[kBeams], c_high_up[kBeams], c_high_down[kBeams];
    alignas(64) float limit[kBeams];  ///< largest way along the axis that still matters
    /// From here on in the frame of a tile: what turns coordinates along the axis, taken in the direction of
    /// the rays, into ways; and where the rays start in the other two axes.
    alignas(64) float near_offset[kBeams], far_offset[kBeams];
    alignas(64) float b_origin_low[kBeams], b_origin_high[kBeams], c_origin_low[kBeams],
        c_origin_high[kBeams];
};

/// Lists of the first hits of a packet, and how far its rays still reach.
struct NearestPacket {
    NearestLanes lanes;
    alignas(64) float t_max[kPacketRays];
};

/// What a thread needs while it traces a group. Large: made once and used again.
struct RayGroup {
    unsigned packets;
    int a, b, c;  ///< the axis along which the group looks, and the other two
    bool negative;
    float along_max, inverse_along_max;  ///< metres along the axis per metre, of the steepest ray
    float far_m;                         ///< largest of far_of
    Beams<kGroupPackets> beams;          ///< of the packets
    Beams<1> whole;
    alignas(64) float far_of[kGroupPackets];  ///< how far the rays of a packet still reach, in metres
    alignas(64) float along_of[kGroupPackets];
    /// lattice_origin() of the packets, by axis.
    alignas(64) double origin_low[3][kGroupPackets], origin_high[3][kGroupPackets];
    double whole_low[3], whole_high[3];
    RayPacket packet[kGroupPackets];

    bool is_single_ray() const { return packets == 1 && packet[0].rays == 1; }
    ClosestLanes closest[kGroupPackets];
    NearestPacket nearest[kGroupPackets];
};

/// A ray of a group.
struct LanePlace {
    std::uint8_t packet, lane;
};

/// The rays of a group that may meet a part, in the part's frame. There they are a group of their own: its
/// packets have other rays, and its lattice_origin() are the local ones.
struct MovedRays {
    unsigned count;
    unsigned first;  ///< of those that are in the packets now
    LanePlace from[kGroupRays];
    LocalRay local[kGroupRays];
    ShearedRay sheared[kGroupRays];  ///< if the part is made of triangles
    RayGroup group;
};

/// What a thread uses again and again.
struct GroupScratch {
    RayGroup group;
    MovedRays moved;
};

/// A part as a batch of rays meets it.
struct GroupPart {
    const Part* part;
    WideTile shape;  ///< with the origin 0: rays are moved there
    Vec3d frame;     ///< of `box` in the world
    BoxNode box;     ///< its first child holds the part at all times of the batch; there is no other
    std::uint32_t slot;
};

/// Rays at tiles and parts. Slots from `first_part` on are those of parts.
struct GroupTask {
    const WideTile* tiles;   ///< by slot
    const GroupPart* parts;  ///< by slot − first_part; those that are not reachable may be empty
    std::uint32_t first_part;
    const SlotFacts* slots;
    std::span<const ReachableTile> reachable;
    std::span<const Ray> rays;
    const std::uint32_t* order;  ///< the numbers of the rays in the order in which they are traced
};

/// The parts of the tracer that are compiled once per instruction set. All of them give the same bits.
struct GroupKernels {
    const char* instruction_set;
    /// Fills blocks and nodes from the columns of a tile. Boxes are wider than discs by `slack_m`.
    void (*build)(const SplatColumns& columns, std::size_t splats, float slack_m, WideTileArrays& tile);
    /// See Tracer.
    void (*closest)(const GroupTask& task, GroupScratch& scratch, std::span<Hit> hits);
    void (*nearest)(const GroupTask& task, GroupScratch& scratch, std::uint32_t depth, float gap_m,
                    std::span<HitList> lists);
};

/// Those that this machine can run, best first.
std::vector<const GroupKernels*> all_group_kernels();

}  // namespace citysplat::trace
