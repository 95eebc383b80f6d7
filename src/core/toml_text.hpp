#pragma once

#include "core/error.hpp"

#include <toml++/toml.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace citysplat {

/// Throws ConfigError naming `origin` and the line. For .cpp files only.
inline toml::table parse_toml(std::string_view text, std::string_view origin) {
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
