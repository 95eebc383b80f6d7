#pragma once

#include "sim/scan/return_lanes.hpp"
#include "sim/scan/scan_hd.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace citysplat::sim {

/// Consecutive rays of one scan on the CPU: loops over the functions of scan_hd.hpp and return_hd.hpp, and
/// the memory they need. Used again for the next batch, it allocates nothing.
class RayBatch {
  public:
    void generate(const ScanView& scan, std::size_t first, std::size_t count);

    std::span<const trace::Ray> rays() const { return rays_; }
    std::span<const Firing> firings() const { return firings_; }
    /// One for each ray, empty. Gone with the next call.
    std::span<trace::Hit> empty_hits();
    std::span<trace::HitList> empty_lists();

    /// Puts the return of each ray in its place among `returns` of the scan. `hits` count if the model's
    /// depth is 1, otherwise `lists`.
    void make_returns(const ScanView& scan, std::span<const trace::Hit> hits,
                      std::span<const trace::HitList> lists, std::span<Return> returns);

  private:
    /// echo_at(i) is the echo of ray i.
    template <class EchoAt>
    void put_returns(const ScanView& scan, std::span<Return> returns, const EchoAt& echo_at);

    struct EchoOfRay {
        std::size_t ray;
        Echo echo;
    };

    std::vector<Firing> made_;  ///< firings of a formula
    std::span<const Firing> firings_;
    std::vector<trace::Ray> rays_;
    std::vector<trace::Hit> hits_;
    std::vector<trace::HitList> lists_;
    const ReturnLanes lanes_ = return_lanes();
    EchoColumns columns_;
    std::array<EchoOfRay, EchoColumns::kMost> echoes_;
};

}  // namespace citysplat::sim
