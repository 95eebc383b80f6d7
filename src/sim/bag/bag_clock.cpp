#include "sim/bag/bag_clock.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "io/bag/ros_messages.hpp"

#include <cmath>

namespace citysplat::sim {

namespace {

constexpr std::int64_t kGpsEpoch_s = 315964800;  // 1980-01-06 in Unix time
constexpr std::int64_t kWeek_s = 604800;

/// Of UTC against GPS, from that Unix time on.
struct LeapSeconds {
    std::int64_t from_s, count;
};
constexpr LeapSeconds kLeapSeconds[]{{1483228800, 18}, {1435708800, 17}, {1341100800, 16},
                                     {1230768000, 15}, {1136073600, 14}, {915148800, 13}};

std::int64_t leap_seconds(std::int64_t unix_s) {
    for (const LeapSeconds& leap : kLeapSeconds)
        if (unix_s >= leap.from_s) return leap.count;
    throw UsageError("--clock: by it the bag would begin before 1999; which epoch have the times?");
}

}  // namespace

std::int64_t BagClock::stamp_ns(double time_s) const {
    const double whole = std::floor(time_s);
    const auto nanoseconds = static_cast<std::int64_t>((time_s - whole) * 1e9 + 0.5);
    const double seconds = whole + static_cast<double>(offset_s);
    if (!(seconds >= 0 && seconds < 0x1p31))
        throw UsageError(
            "time " + format_number(time_s) +
            " s of the trajectory has no stamp in a bag: ROS counts seconds from 1970 to 2038; see "
            "--clock");
    return static_cast<std::int64_t>(seconds) * 1'000'000'000 + nanoseconds;
}

BagClock BagClock::named(std::string_view word, double begin_s) {
    const auto whole = static_cast<std::int64_t>(std::floor(begin_s));
    const auto gps = [&](std::int64_t epoch_s) {
        const std::int64_t offset = epoch_s - leap_seconds(whole + epoch_s);
        return BagClock{offset, {}};
    };
    if (word == "unix") return {};
    if (word == "gps") return gps(kGpsEpoch_s);
    if (word == "gps-adjusted") return gps(kGpsEpoch_s + 1'000'000'000);
    if (word.starts_with("gps-week:")) {
        const auto week = parse_whole<std::int64_t>(word.substr(9));
        if (!week || *week < 0 || *week > 3500)
            throw UsageError("--clock gps-week:N: N is the number of a week since 1980, from 0 to 3500");
        return gps(kGpsEpoch_s + *week * kWeek_s);
    }
    if (word != "unknown")
        throw UsageError("clock \"" + std::string(word) +
                         "\" is not one of unknown, unix, gps, gps-adjusted, gps-week:N");
    return {-whole, "the epoch of the trajectory's times is not known: stamps begin at 0 s (" +
                        std::to_string(whole) + " s of the trajectory); --clock says it"};
}

}  // namespace citysplat::sim
