#include "sim/session/frame_stream.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <algorithm>

namespace citysplat::sim {

std::uint64_t FrameStream::reserve(std::span<const Sweep> sweeps, std::uint64_t budget_bytes) {
    constexpr std::uint64_t kShare = 8;
    share_bytes_ = std::min(budget_bytes / kShare, frames_.bytes_of_all());
    for (const Sweep& sweep : sweeps)
        share_bytes_ = std::max(share_bytes_, frames_.bytes_for(std::span(&sweep, 1)));
    return share_bytes_;
}

std::size_t FrameStream::sweeps_that_fit(std::span<const Sweep> sweeps) const {
    std::size_t count = std::min<std::size_t>(1, sweeps.size());
    while (count < sweeps.size() && frames_.bytes_for(sweeps.first(count + 1)) <= share_bytes_) ++count;
    return count;
}

void FrameStream::make_ready(std::span<const Sweep> sweeps) {
    if (sweeps.size() == 1 && frames_.bytes_for(sweeps) > share_bytes_)
        throw UsageError("the recorded frames of the scan at " + format_number(sweeps[0].begin_s) +
                         " s take " + format_bytes(frames_.bytes_for(sweeps)) + ", and " +
                         format_bytes(share_bytes_) + " are kept for them; give the session more memory");
    frames_.make_ready(sweeps);
    most_resident_ = std::max(most_resident_, frames_.resident_frames());
}

}  // namespace citysplat::sim
