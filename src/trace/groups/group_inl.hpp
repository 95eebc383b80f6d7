// Compiled once per instruction set by kernels.cpp, after walk_inl.hpp, hence without include guard.
// From rays in packets to beams, and beams in the frame of a tile.

#include <algorithm>
#include <cmath>
#include <tuple>

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

/// Consecutive rays of a task, or of those that were moved.
struct Stretch {
    std::size_t first, count;
};

/// The extent of the origins of each packet, once they are there. In a loop of its own: a vector that is read
/// before the numbers in it have reached the cache waits.
HWY_INLINE void bound_origins(RayGroup& group) {
    for (unsigned p = 0; p < group.packets; ++p)
        for (int axis = 0; axis < 3; ++axis) {
            const double* origins = group.packet[p].lattice[axis];
            group.origin_low[axis][p] = least_of(origins);
            group.origin_high[axis][p] = largest_of(origins);
        }
}

/// Chooses the axis. Returns the least component of a ray along it; not above 0 when there is no axis along
/// which all rays look the same way.
float choose_axis(RayGroup& group) {
    float best = 0;
    for (int axis = 0; axis < 3; ++axis) {
        float low = INFINITY, high = -INFINITY;
        for (unsigned p = 0; p < group.packets; ++p) {
            low = std::min(low, least_of(group.packet[p].direction[axis]));
            high = std::max(high, largest_of(group.packet[p].direction[axis]));
        }
        const float least = std::max(low, -high);
        if (least <= best) continue;
        best = least;
        group.a = axis;
        group.negative = high < 0;
    }
    group.b = (group.a + 1) % 3;
    group.c = (group.a + 2) % 3;
    return best;
}

template <unsigned kBeams>
HWY_INLINE void set_slopes(Beams<kBeams>& beams, unsigned i, const float (&b)[2], const float (&c)[2]) {
    const auto up = [](float v) { return std::max(v, 0.0f); };
    const auto down = [](float v) { return std::min(v, 0.0f); };
    beams.b_low_up[i] = up(b[0]), beams.b_low_down[i] = down(b[0]);
    beams.b_high_up[i] = up(b[1]), beams.b_high_down[i] = down(b[1]);
    beams.c_low_up[i] = up(c[0]), beams.c_low_down[i] = down(c[0]);
    beams.c_high_up[i] = up(c[1]), beams.c_high_down[i] = down(c[1]);
}

/// Slopes and origins of the packets and of the whole group.
void aim(RayGroup& group) {
    float whole_b[2] = {INFINITY, -INFINITY}, whole_c[2] = {INFINITY, -INFINITY};
    group.along_max = 0;
    for (int axis = 0; axis < 3; ++axis) group.whole_low[axis] = INFINITY, group.whole_high[axis] = -INFINITY;
    for (unsigned p = 0; p < group.packets; ++p) {
        RayPacket& packet = group.packet[p];
        for (unsigned i = 0; i < kPacketRays; i += kStep) {
            const V along = hn::Abs(load(packet.direction[group.a] + i));
            hn::Store(along, Floats(), packet.along + i);
            hn::Store(hn::Div(load(packet.direction[group.b] + i), along), Floats(), packet.slope_b + i);
            hn::Store(hn::Div(load(packet.direction[group.c] + i), along), Floats(), packet.slope_c + i);
        }
        const float b[2] = {least_of(packet.slope_b), largest_of(packet.slope_b)};
        const float c[2] = {least_of(packet.slope_c), largest_of(packet.slope_c)};
        set_slopes(group.beams, p, b, c);
        group.along_of[p] = largest_of(packet.along);
        group.along_max = std::max(group.along_max, group.along_of[p]);
        whole_b[0] = std::min(whole_b[0], b[0]), whole_b[1] = std::max(whole_b[1], b[1]);
        whole_c[0] = std::min(whole_c[0], c[0]), whole_c[1] = std::max(whole_c[1], c[1]);
        for (int axis = 0; axis < 3; ++axis) {
            group.whole_low[axis] = std::min(group.whole_low[axis], group.origin_low[axis][p]);
            group.whole_high[axis] = std::max(group.whole_high[axis], group.origin_high[axis][p]);
        }
    }
    set_slopes(group.whole, 0, whole_b, whole_c);
    group.inverse_along_max = 1 / group.along_max;
    group.whole.limit[0] = group.far_m * group.along_max;
    // Nothing meets packets that do not exist.
    for (unsigned p = group.packets; p < kGroupPackets; ++p) group.far_of[p] = group.beams.limit[p] = -1;
}

/// Once the t_max of the rays are those of hits that are known already.
template <class Keep>
void limit_packets(RayGroup& group) {
    for (unsigned p = 0; p < group.packets; ++p) {
        group.far_of[p] = largest_of(Keep::t_max(group, p));
        group.beams.limit[p] = group.far_of[p] * group.along_of[p];
    }
    limit_group(group);
}

template <unsigned kBeams>
HWY_INLINE void place(Beams<kBeams>& beams, unsigned i, const RayGroup& group, const double (&low)[3],
                      const double (&high)[3]) {
    const auto [a, b, c] = std::tuple(group.a, group.b, group.c);
    beams.near_offset[i] = static_cast<float>(group.negative ? low[a] : -high[a]);
    beams.far_offset[i] = static_cast<float>(group.negative ? high[a] : -low[a]);
    beams.b_origin_low[i] = static_cast<float>(low[b]);
    beams.b_origin_high[i] = static_cast<float>(high[b]);
    beams.c_origin_low[i] = static_cast<float>(low[c]);
    beams.c_origin_high[i] = static_cast<float>(high[c]);
}

/// Puts the beam of the whole group into the frame of a tile or part, whose boxes are in `root`. Rounding
/// keeps the order of numbers, so the local origins of rays lie between the rounded ends of their interval.
/// Returns whether the beam may meet one of them.
HWY_INLINE bool approach(Vec3d frame_origin, const BoxNode& root, RayGroup& group) {
    const double frame[3] = {frame_origin.x, frame_origin.y, frame_origin.z};
    double low[3], high[3];
    for (int axis = 0; axis < 3; ++axis) {
        low[axis] = group.whole_low[axis] - frame[axis];
        high[axis] = group.whole_high[axis] - frame[axis];
    }
    place(group.whole, 0, group, low, high);
    alignas(64) float distance_m[kWide];
    return children_met(group, root, distance_m) != 0;
}

/// The same for the beams of the packets.
void enter(Vec3d frame_origin, RayGroup& group) {
    const double frame[3] = {frame_origin.x, frame_origin.y, frame_origin.z};
    double low[3], high[3];
    for (unsigned p = 0; p < group.packets; ++p) {
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = group.origin_low[axis][p] - frame[axis];
            high[axis] = group.origin_high[axis][p] - frame[axis];
        }
        place(group.beams, p, group, low, high);
        group.packet[p].is_in_tile = false;
    }
}

/// How far the rays of a packet go apart in a city: extent of their directions, and of their origins at the
/// distance of a façade.
HWY_INLINE float spread(const RayGroup& group, unsigned p) {
    constexpr double kTypicalDistance_m = 10;
    float directions = 0;
    double origins = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const float* direction = group.packet[p].direction[axis];
        directions = std::max(directions, largest_of(direction) - least_of(direction));
        origins = std::max(origins, group.origin_high[axis][p] - group.origin_low[axis][p]);
    }
    return directions + static_cast<float>(origins / kTypicalDistance_m);
}

/// Whether the rays of most packets stay close together. Otherwise each of them is better off alone: a beam
/// around all of them meets too many discs. (Between spreads of 0.2 and 1 the time hardly depends on the
/// limit.)
bool is_coherent(const RayGroup& group) {
    constexpr float kWidestPacket = 0.4f;
    unsigned wide = 0;
    for (unsigned p = 0; p < group.packets; ++p) wide += spread(group, p) > kWidestPacket;
    return 8 * wide <= group.packets;
}

/// Rays of a group have at least this component along its axis, unless there is only one. It bounds the
/// slopes.
constexpr float kLeastAlong = 0.1f;

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
