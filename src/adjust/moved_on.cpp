#include "adjust/moved_on.hpp"

namespace citysplat::adjust {

namespace {

/// Slots that are asked before and after a sighting: two and a half seconds of a car that drives.
constexpr std::uint32_t kAsked = 25;
/// Farther places are seen by few rays: nobody can tell an empty place from one between the beams.
constexpr double kFarthest_m = 25;
constexpr std::size_t kLeastPasses = 3;

}  // namespace

bool moved_on(std::span<const SlotOfCell> sighting, const Corrections& corrections, const Sights& sights) {
    Moments seen;
    for (const SlotOfCell& slot : sighting) seen += slot.moments;
    const std::uint32_t drive = sighting.front().drive;
    const Correction& correction = corrections.drive(drive);
    const auto passes = [&](std::uint32_t slot) {
        const auto middle = correction.middle_of(slot - corrections.first_slot(drive));
        const KnotCorrection c = correction.at(middle);
        const Vec3d offset = seen.mean_m - correction.given_position_m(middle) - c.shift_m;
        if (length(offset) > kFarthest_m) return false;
        // Sights have the directions of the poses as given.
        return sights.passes(slot, rotate(conjugate(rotation_from(c.turn_rad)), offset));
    };
    const std::uint32_t first = sighting.front().slot, last = sighting.back().slot;
    const std::uint32_t begin = corrections.first_slot(drive),
                        end = begin + static_cast<std::uint32_t>(correction.intervals());
    std::size_t passed = 0;
    for (std::uint32_t i = 1; i <= kAsked; ++i) {
        if (first >= begin + i) passed += passes(first - i);
        if (last + i < end) passed += passes(last + i);
    }
    return passed >= kLeastPasses && 2 * passed >= sighting.size();
}

}  // namespace citysplat::adjust
