#pragma once

#include "core/error.hpp"

#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace citysplat {

/// The line of a key of more than kMostKeyParts parts (a.b.c has three), 0 when there is none. toml++ bounds
/// the depth of values, but not that of keys, and recurses into the tables they make: a key of some ten
/// thousand parts overflows the stack. What stands in quotes is one part; a text of several lines with that
/// many words joined by dots is taken for a key.
inline std::uint64_t line_of_endless_key(std::string_view text) {
    constexpr int kMostKeyParts = 64;
    std::uint64_t line = 1;
    int dots = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"' || c == '\'') {  // to the end of the string, or of the line
            while (i + 1 < text.size() && text[i + 1] != '\n' && text[++i] != c)
                if (text[i] == '\\' && c == '"' && i + 1 < text.size() && text[i + 1] != '\n') ++i;
        } else if (c == '#') {
            while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
        } else if (c == '.' && !text.substr(i + 1).starts_with('.')) {
            if (++dots >= kMostKeyParts) return line;
        } else if (std::string_view(".=[]{},\n").find(c) != std::string_view::npos) {
            dots = 0;
        }
        line += c == '\n';
    }
    return 0;
}

/// Throws ConfigError naming `origin` and the line. For .cpp files only.
inline toml::table parse_toml(std::string_view text, std::string_view origin) {
    if (const std::uint64_t line = line_of_endless_key(text))
        throw ConfigError(std::string(origin) + ": line " + std::to_string(line) +
                          ": a key of more than 64 parts");
    try {
        return toml::parse(text, std::string(origin));
    } catch (const toml::parse_error& e) {
        throw ConfigError(std::string(origin) + ": line " + std::to_string(e.source().begin.line) + ": " +
                          std::string(e.description()));
    }
}

/// A whole number written as one; toml++ itself converts floating point numbers, however large.
template <class Integer>
std::optional<Integer> whole_number(const toml::node* node) {
    const auto* integer = node ? node->as_integer() : nullptr;
    if (!integer || !std::in_range<Integer>(integer->get())) return std::nullopt;
    return static_cast<Integer>(integer->get());
}

}  // namespace citysplat
