#pragma once

#include "core/text.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Floating point numbers as text without loss: hexadecimal, as C and Python write them, without "0x".
namespace citysplat::sim::learn {

template <class Float>
std::string hex_text(std::span<const Float> values) {
    std::string text;
    for (const Float value : values) {
        char digits[40];
        const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::hex).ptr;
        if (!text.empty()) text += ' ';
        text.append(digits, end);
    }
    return text;
}

/// Nothing unless there are exactly `count` finite numbers between blanks.
template <class Float>
std::optional<std::vector<Float>> parse_hex(std::string_view text, std::size_t count) {
    std::vector<Float> values;
    for (const std::string_view word : words_of(text)) {
        Float value{};
        const auto [end, ec] =
            std::from_chars(word.data(), word.data() + word.size(), value, std::chars_format::hex);
        if (ec != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
            return std::nullopt;
        values.push_back(value);
    }
    if (values.size() != count) return std::nullopt;
    return values;
}

}  // namespace citysplat::sim::learn
