#pragma once

#include "core/number_range.hpp"

#include <CLI/CLI.hpp>

#include <concepts>
#include <string>

/// The checks of numeric flags. Every option that takes a number has one of them, whatever else it has: what
/// CLI11 takes for a number includes NaN and infinities, and -1 as a count.
namespace citysplat::cli {

/// A number in that range.
inline CLI::Validator in_range(const NumberRange& range) {
    return CLI::Validator(
        [range](std::string& text) {
            const auto value = parse_number(text);
            if (value && range.contains(*value)) return std::string();
            return "\"" + text + "\" is not a number " + range.text();
        },
        "NUMBER " + NumberRange{range.least, range.most}.text());
}

/// A whole number from `least` to `most`.
template <std::integral Integer>
CLI::Validator whole_from(Integer least, Integer most) {
    const std::string range = "from " + std::to_string(least) + " to " + std::to_string(most);
    return CLI::Validator(
        [least, most, range](std::string& text) {
            const auto value = parse_whole<Integer>(text);
            if (value && *value >= least && *value <= most) return std::string();
            return "\"" + text + "\" is not a whole number " + range;
        },
        "NUMBER " + range);
}

}  // namespace citysplat::cli
