#pragma once

#include "sim/scan/pulse_hd.hpp"
#include "sim/scan/return_lanes.hpp"
#include "sim/scan/scan_hd.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace citysplat::sim {

/// Consecutive pulses of one scan on the CPU: loops over the functions of scan_hd.hpp, pulse_hd.hpp and
/// return_hd.hpp, and the memory they need. Used again for the next batch, it allocates nothing.
class RayBatch {
  public:
    void generate(const ScanView& scan, std::size_t first, std::size_t count);

    /// BeamModel::rays for each pulse, its axis first.
    std::span<const trace::Ray> rays() const { return rays_; }
    std::span<const Firing> firings() const { return firings_; }
    /// One for each ray, empty. Gone with the next call.
    std::span<trace::Hit> empty_hits();
    std::span<trace::HitList> empty_lists();

    /// Puts the returns of each pulse in their places among `returns` of the whole scan. `hits` count if the
    /// model's depth is 1, otherwise `lists`; one for each ray.
    void make_returns(const ScanView& scan, std::span<const trace::Hit> hits,
                      std::span<const trace::HitList> lists, std::span<Return> returns);

  private:
    /// echo_at(i) is the echo of ray i.
    template <class EchoAt>
    void put_echoes(const ScanView& scan, std::span<Return> returns, const EchoAt& echo_at);
    /// The returns of one number of all pulses. echo_at(i) is the echo of pulse i.
    template <class EchoAt>
    void put_returns(const ScanView& scan, std::uint32_t number, std::span<Return> returns,
                     const EchoAt& echo_at);

    struct EchoOfPulse {
        std::size_t pulse;
        Echo echo;
    };

    std::vector<Firing> made_;  ///< firings of a formula
    std::span<const Firing> firings_;
    std::vector<trace::Ray> rays_;
    std::vector<trace::Hit> hits_;
    std::vector<trace::HitList> lists_;
    const ReturnLanes lanes_ = return_lanes();
    EchoColumns columns_;
    std::array<EchoOfPulse, EchoColumns::kMost> echoes_;
    std::vector<PulseEchoes> gathered_;  ///< of pulses with a width
};

}  // namespace citysplat::sim
