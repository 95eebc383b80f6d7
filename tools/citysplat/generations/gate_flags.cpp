#include "citysplat/generations/gate_flags.hpp"

#include "citysplat/number_flags.hpp"
#include "diff/drive_distance.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace citysplat::cli {

void GateFlags::add_to(CLI::App& verb) {
    constexpr NumberRange kShare_percent{0, 100, "%"}, kChange_percent{0, 1e6, "%"}, kDistance_m{0, 1, "m"};
    verb.add_option("--most-changed", changed_percent_,
                    "publish nothing (exit code 76) when more of the tiles are new, gone or changed")
        ->check(in_range(kShare_percent))
        ->type_name("PERCENT");
    verb.add_option("--most-splat-change", splats_percent_,
                    "publish nothing (76) when there are so many splats more or less")
        ->check(in_range(kChange_percent))
        ->type_name("PERCENT");
    verb.add_option(
            "--most-distance", distance_m_,
            "publish nothing (76) when 5 % of the points of new inputs are farther than this from the "
            "surfaces that the city had there: a drive whose poses are wrong")
        ->check(in_range(kDistance_m))
        ->type_name("M");
}

void GateFlags::add_failed_to(CLI::App& verb) {
    verb.add_option("--most-failed", failed_,
                    "publish nothing (76) when more tiles than this could not be made; with "
                    "--keep-old-for-failed")
        ->check(whole_from(0, 1'000'000'000))
        ->type_name("N");
}

std::vector<tiling::CandidateGate> GateFlags::gates(const CancelToken& cancel) const {
    std::vector<tiling::CandidateGate> gates;
    if (changed_percent_ != kNone) gates.push_back(tiling::changed_tiles_gate(changed_percent_ / 100));
    if (splats_percent_ != kNone) gates.push_back(tiling::splat_change_gate(splats_percent_ / 100));
    if (failed_ != kNone) gates.push_back(tiling::failed_tiles_gate(static_cast<std::uint64_t>(failed_)));
    if (distance_m_ != kNone) gates.push_back(diff::drive_distance_gate(distance_m_, cancel));
    return gates;
}

nlohmann::json gates_json(const std::vector<tiling::GateResult>& results) {
    nlohmann::json all = nlohmann::json::array();
    for (const tiling::GateResult& r : results)
        all.push_back(
            {{"gate", r.gate}, {"value", r.value}, {"most", r.most}, {"holds", r.holds()}, {"text", r.text}});
    return all;
}

}  // namespace citysplat::cli
