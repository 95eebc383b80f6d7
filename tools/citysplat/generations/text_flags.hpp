#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace citysplat::cli {

/// The check of a text whose absence means something: a variable of a script that is not set must not be
/// taken for a flag that was not given.
inline CLI::Validator not_empty() {
    return CLI::Validator(
        [](std::string& text) {
            return text.empty() ? std::string("is empty: is a variable not set?") : std::string();
        },
        "");
}

}  // namespace citysplat::cli
