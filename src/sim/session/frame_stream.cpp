#include "sim/drive/frame_stream.hpp"

#include <algorithm>
#include <vector>

namespace citysplat::sim {

std::uint64_t FrameStream::reserve(std::span<const double> times, std::uint64_t budget_bytes) {
    constexpr std::uint64_t kShare = 8;
    share_bytes_ = std::min(budget_bytes / kShare, frames_.bytes_of_all());
    for (const double time_s : times) {
        const Sweep sweep{time_s, sweep_s_};
        share_bytes_ = std::max(share_bytes_, frames_.bytes_for(std::span(&sweep, 1)));
    }
    return share_bytes_;
}

std::size_t FrameStream::scans_that_fit(std::span<const double> times) const {
    std::vector<Sweep> sweeps;
    for (const double time_s : times) {
        sweeps.push_back({time_s, sweep_s_});
        if (sweeps.size() > 1 && frames_.bytes_for(sweeps) > share_bytes_) return sweeps.size() - 1;
    }
    return sweeps.size();
}

void FrameStream::make_ready(std::span<const double> times) {
    std::vector<Sweep> sweeps;
    for (const double time_s : times) sweeps.push_back({time_s, sweep_s_});
    frames_.make_ready(sweeps);
    most_resident_ = std::max(most_resident_, frames_.resident_frames());
}

}  // namespace citysplat::sim
