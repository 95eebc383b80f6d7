#pragma once

#include "model/tile_source.hpp"
#include "trace/ray_disc_hd.hpp"
#include "trace/tracer.hpp"

#include <cstddef>
#include <span>
#include <vector>

struct RTCDeviceTy;
struct RTCSceneTy;
struct RTCBoundsFunctionArguments;
struct RTCIntersectFunctionNArguments;

namespace citysplat::bench {

/// All discs of a city in one Embree scene, one primitive each, relative to an anchor: the loop that a
/// program written for the purpose has, and the baseline of everything that casts rays.
class BareEmbreeLoop {
  public:
    BareEmbreeLoop(const TileSource& city, Vec3d anchor);
    ~BareEmbreeLoop();
    BareEmbreeLoop(const BareEmbreeLoop&) = delete;
    BareEmbreeLoop& operator=(const BareEmbreeLoop&) = delete;

    /// How many of the rays meet a disc, in packets of eight; a remainder of less than eight rays is left
    /// out.
    std::size_t count_hits(std::span<const trace::Ray> rays) const;

  private:
    static void bounds(const RTCBoundsFunctionArguments* a);
    static void intersect(const RTCIntersectFunctionNArguments* a);
    std::size_t count_hits_of_packet(std::span<const trace::Ray, 8> rays) const;

    Vec3d anchor_;
    RTCDeviceTy* device_;
    RTCSceneTy* scene_;
    std::vector<trace::TraceDisc> discs_;
    std::vector<float> radius_;
};

}  // namespace citysplat::bench
