#pragma once

#include "run_program.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace citysplat::test {

/// Runs a verb with --json; it must succeed, and print one object with at least these keys.
inline nlohmann::json run_json(std::vector<std::string> arguments,
                               const std::vector<std::string>& keys = {}) {
    arguments.insert(arguments.begin(), {"--json", "-q"});
    const Outcome outcome = citysplat(arguments);
    std::string shown;
    for (const auto& a : arguments) shown += a + " ";
    INFO(shown << "\n" << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    nlohmann::json result = nlohmann::json::parse(outcome.out);
    for (const auto& key : keys) {
        INFO(key);
        CHECK(result.contains(nlohmann::json::json_pointer("/" + key)));
    }
    return result;
}

}  // namespace citysplat::test
