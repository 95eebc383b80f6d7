#pragma once

#include "citysplat/night/child.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace citysplat::cli {

/// A tile on the map of a report.
struct MapTile {
    double x_m = 0, y_m = 0, size_m = 0;
    enum class State { same, changed, added, removed } state = State::same;
};

/// A place before and after, as PNG files in memory.
struct PicturePair {
    std::string title;
    std::string before, after;  ///< bytes; empty: there is none
};

/// All that a night has to say.
struct NightFacts {
    std::string city;
    std::string status;  ///< "published", "unchanged", "held_back", "failed", "interrupted"
    int code = 0;        ///< what nightly ends with
    std::string message;
    std::int64_t begun_s = 0, ended_s = 0;
    std::vector<StepResult> steps;
    nlohmann::json generation;  ///< `status --json` of the latest generation; null without one
    nlohmann::json diff;        ///< since the last report; null when nothing changed
    std::string untold;         ///< why what changed is not known; empty: it is
    std::vector<MapTile> map;
    std::vector<PicturePair> pictures;

    const StepResult* step(const std::string& name) const;
    /// The gates that were asked, as `publish` tells them.
    nlohmann::json gates() const;
    bool succeeded() const { return status == "published" || status == "unchanged"; }
};

/// One page that needs neither a network nor a script.
std::string html_of(const NightFacts& facts);
/// At most 25 lines of at most 100 columns.
std::string summary_of(const NightFacts& facts);
nlohmann::json json_of(const NightFacts& facts);
/// A test case for each step and each gate, and for each tile that failed.
std::string junit_of(const NightFacts& facts);
/// For the textfile collector. `last_success_s` 0: never.
std::string prometheus_of(const NightFacts& facts, std::int64_t last_success_s);

}  // namespace citysplat::cli
