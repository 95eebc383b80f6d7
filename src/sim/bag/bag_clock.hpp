#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace citysplat::sim {

/// From the seconds of a trajectory to the stamps of a bag, which are nanoseconds of Unix time. What lies
/// between them is a whole number of seconds, so that nothing is rounded but the nanosecond.
struct BagClock {
    std::int64_t offset_s = 0;  ///< stamp − time of the trajectory
    std::string note;           ///< what a user should hear about it

    /// Throws UsageError when the stamp is before 1970 or does not fit the 31 bits that ROS has for seconds.
    std::int64_t stamp_ns(double time_s) const;

    /// The word of --clock: "unix", "gps" (seconds since 1980-01-06), "gps-adjusted" (10⁹ less, as in LAS),
    /// "gps-week:N" (seconds of that week), or "unknown": the bag begins in the first second of 1970. GPS has
    /// no leap seconds; those of the time at which the bag begins are taken off. Throws UsageError for
    /// another word.
    static BagClock named(std::string_view word, double begin_s);
};

}  // namespace citysplat::sim
