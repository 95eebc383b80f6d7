// Compiled once per instruction set by kernels.cpp, after leaf_inl.hpp, hence without include guard.
// The triangles of a leaf against the rays that reach it.

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

/// The leaf test of triangles: sixteen of them at each ray. Shapes are small and their triangles too, so that
/// few rays of a packet meet the same leaf.
template <class Keep>
class TriangleLeaves {
  public:
    TriangleLeaves(MovedRays& moved, const WideTile& tile, std::uint32_t slot)
        : moved_(moved), group_(moved.group), tile_(tile), slot_(slot) {}

    void prefetch(std::uint32_t leaf) const {
        const auto* lines = reinterpret_cast<const char*>(tile_.triangles + leaf);
        for (unsigned i = 0; i < 9; ++i) __builtin_prefetch(lines + 64 * i);
    }

    /// As DiscLeaves::meet().
    bool meet(std::uint32_t leaf, std::uint32_t packets, const BoxNode& node) {
        bool lowered = false;
        for (; packets != 0; packets &= packets - 1) {
            const auto p = static_cast<unsigned>(__builtin_ctz(packets));
            RayPacket& packet = group_.packet[p];
            if (!packet.is_in_tile) enter_packet(tile_.origin, packet);
            bool any = false;
            unsigned rays = rays_at(group_, packet, Keep::t_max(group_, p), node, leaf % kWide);
            for (; rays != 0; rays &= rays - 1)
                any |= meet_ray(leaf, p, static_cast<unsigned>(__builtin_ctz(rays)));
            if (any) lowered |= lower<Keep>(group_, p);
        }
        return lowered;
    }

  private:
    /// Corners of triangles as a ray sees them: the operations of meets() in their order.
    struct Corner {
        V x, y, z;
    };
    HWY_INLINE Corner corner(const float (&columns)[3][kWide], unsigned i, const ShearedRay& ray) const {
        const V depth = hn::Sub(load(columns[ray.z] + i), set(ray.origin[2]));
        return {
            hn::Sub(hn::Sub(load(columns[ray.x] + i), set(ray.origin[0])), hn::Mul(set(ray.shear_x), depth)),
            hn::Sub(hn::Sub(load(columns[ray.y] + i), set(ray.origin[1])), hn::Mul(set(ray.shear_y), depth)),
            hn::Mul(set(ray.scale_z), depth)};
    }
    static HWY_INLINE V edge(const Corner& a, const Corner& b) {
        return hn::Sub(hn::Mul(b.x, a.y), hn::Mul(b.y, a.x));
    }

    HWY_INLINE bool meet_ray(std::uint32_t leaf, unsigned p, unsigned lane) {
        const TriangleBlock& block = tile_.triangles[leaf];
        const ShearedRay& ray = moved_.sheared[moved_.first + p * kPacketRays + lane];
        const std::uint32_t first = leaf * kWide;
        const unsigned exist =
            tile_.primitives - first >= kWide ? 0xffffu : (1u << (tile_.primitives - first)) - 1;
        const float t_min = group_.packet[p].t_min[lane];
        float& t_max = Keep::t_max(group_, p)[lane];
        bool any = false;
        for (unsigned i = 0; i < kWide; i += kStep) {
            const Corner a = corner(block.corner[0], i, ray), b = corner(block.corner[1], i, ray),
                         c = corner(block.corner[2], i, ray);
            const V zero = hn::Zero(Floats());
            const V u = edge(b, c), v = edge(c, a), w = edge(a, b);
            const V least = hn::Min(hn::Min(u, v), w), most = hn::Max(hn::Max(u, v), w);
            const M inside = hn::Or(hn::Ge(least, zero), hn::Le(most, zero));
            // An edge function of 0 must be looked at again.
            const M unsure = hn::Or(hn::Or(hn::Eq(u, zero), hn::Eq(v, zero)), hn::Eq(w, zero));
            const unsigned there = exist >> i;
            unsigned again = bits_of(unsure) & there;
            if (((bits_of(inside) & there) | again) == 0) continue;
            const V sum = hn::Add(hn::Add(u, v), w);
            const V t = hn::Div(hn::Add(hn::Add(hn::Mul(u, a.z), hn::Mul(v, b.z)), hn::Mul(w, c.z)), sum);
            const M in_range = hn::And(hn::Gt(t, set(t_min)), hn::Le(t, set(t_max)));
            unsigned hits = bits_of(hn::And(inside, in_range)) & there & ~again;
            HWY_ALIGN float ts[kStep];
            hn::Store(t, Floats(), ts);
            for (; again != 0; again &= again - 1) {
                const auto k = static_cast<unsigned>(__builtin_ctz(again));
                float exact_t;
                if (!meets(block.triangle(i + k), ray, exact_t) || !(exact_t > t_min && exact_t <= t_max))
                    continue;
                ts[k] = exact_t;
                hits |= 1u << k;
            }
            for (; hits != 0; hits &= hits - 1) {
                const auto k = static_cast<unsigned>(__builtin_ctz(hits));
                if (!(ts[k] <= t_max)) continue;
                Keep::lanes(group_, p).offer(lane, ts[k], {slot_, first + i + k}, t_max);
                any = true;
            }
        }
        return any;
    }

    MovedRays& moved_;
    RayGroup& group_;
    const WideTile& tile_;
    std::uint32_t slot_;
};

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
