#pragma once

#include "core/error.hpp"

#include <toml++/toml.h>

#include <string>
#include <string_view>

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

}  // namespace citysplat
