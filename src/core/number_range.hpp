#pragma once

#include "core/math/lattice.hpp"

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace citysplat {

/// The values that a number of a user may have. Flags of the program and fields of files ask here, so that
/// NaN, infinities and absurd values are refused everywhere, in the same words.
struct NumberRange {
    double least, most;
    std::string_view unit{};

    /// False for NaN.
    bool contains(double v) const { return v >= least && v <= most; }
    /// "from 0.001 to 10000 Hz".
    std::string text() const;
};

/// What several flags and files have in common.
namespace ranges {
inline constexpr NumberRange kPosition_m{-kMaxWorld_m, kMaxWorld_m, "m"};
/// From the vehicle to a sensor or a camera on it.
inline constexpr NumberRange kLever_m{-10'000, 10'000, "m"};
inline constexpr NumberRange kAngle_deg{-360, 360, "degrees"};
/// Three thousand years on either side of any epoch: times in milliseconds are beyond it.
inline constexpr NumberRange kTime_s{-1e11, 1e11, "s"};
inline constexpr NumberRange kScanRate_hz{0.001, 10'000, "Hz"};
/// Between the hits of one surface.
inline constexpr NumberRange kGap_m{0.0001, 100, "m"};
}  // namespace ranges

/// The whole text as a number; NaN and infinities are such. Nothing when it is none, or is too large.
std::optional<double> parse_number(std::string_view text);

/// The whole text as a whole number of that type, in digits.
template <std::integral Integer>
std::optional<Integer> parse_whole(std::string_view text) {
    Integer value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace citysplat
