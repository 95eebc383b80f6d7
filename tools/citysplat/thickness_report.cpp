#include "citysplat/thickness_report.hpp"

#include "adjust/thickness.hpp"
#include "citysplat/number_flags.hpp"
#include "core/bytes.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <cstdio>

namespace citysplat::cli {

using nlohmann::json;

namespace {

/// Fewer cells say nothing about a city.
constexpr std::uint64_t kLeastCells = 50;

double number(const json& object, const char* key) { return object.at(key).get<double>(); }

/// "4.31 %".
std::string percent(double share) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f %%", 100 * share);
    return text.data();
}

/// The lines about it, indented, without the end of the last one.
std::string worst_places(const json& thickness) {
    std::string worst = worst_text(thickness);
    if (!worst.empty()) worst.pop_back();
    return worst;
}

}  // namespace

std::optional<json> kept_thickness(const std::string& findings, std::int64_t findings_of) {
    const json all = json::parse(findings, nullptr, false);
    if (!all.is_object() || !all.contains("thickness")) return std::nullopt;
    json thickness = all["thickness"];
    try {  // all of it is there and of the right type when it can be told
        thickness_text(thickness), worst_text(thickness), can_judge(thickness);
    } catch (const json::exception&) {
        return std::nullopt;
    }
    thickness["generation"] = findings_of;
    return thickness;
}

std::string thickness_text(const json& t) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  " of %s flat cells thicker than 10 cm (gap p50 %.1f, p90 %.1f, p99 %.1f cm)",
                  format_count(t.at("cells").get<std::uint64_t>()).c_str(), 100 * number(t, "gap_p50_m"),
                  100 * number(t, "gap_p90_m"), 100 * number(t, "gap_p99_m"));
    return percent(number(t, "thick_share")) + text.data();
}

std::string worst_text(const json& t) {
    std::string text;
    for (const json& gap : t.at("worst")) {
        const json &place = gap.at("place"), &times = gap.at("times_s");
        const auto at = [](const json& list, std::size_t i) { return list.at(i).get<double>(); };
        std::array<char, 160> line{};
        std::snprintf(line.data(), line.size(), "  %.1f cm at %.1f %.1f %.1f between %.1f s and %.1f s\n",
                      100 * number(gap, "gap_m"), at(place, 0), at(place, 1), at(place, 2), at(times, 0),
                      at(times, 1));
        text += line.data();
    }
    return text;
}

bool can_judge(const json& t) { return t.at("cells").get<std::uint64_t>() >= kLeastCells; }

std::optional<std::string> thickness_warning(const json& t) {
    if (!can_judge(t) || number(t, "thick_share") <= adjust::kMostThick) return std::nullopt;
    return "surfaces are thick because passes disagree: " + thickness_text(t) +
           "; the poses are not good enough, citysplat adjust corrects them. The worst places:\n" +
           worst_places(t);
}

void ThicknessGate::add_to(CLI::App& verb) {
    verb.add_option("--most-thick", most_percent_,
                    "publish nothing (exit code 76) when more of the flat cells that were seen twice are "
                    "thicker than 10 cm; what was built is kept")
        ->check(in_range(kShare_percent))
        ->type_name("PERCENT");
}

tiling::Gate ThicknessGate::gate() const {
    if (most_percent_ == kNone) return {};
    return [most = most_percent_](const std::string& findings) -> std::optional<std::string> {
        const auto thickness = kept_thickness(findings, 0);
        if (!thickness || !can_judge(*thickness) || 100 * number(*thickness, "thick_share") <= most)
            return std::nullopt;
        return "surfaces are thicker than --most-thick allows: " + thickness_text(*thickness) +
               ". The worst places:\n" + worst_places(*thickness) + "\ncitysplat adjust corrects poses";
    };
}

std::optional<std::string> ThicknessGate::why_open(const std::string& findings) const {
    if (most_percent_ == kNone) return std::nullopt;
    const auto thickness = kept_thickness(findings, 0);
    if (thickness && can_judge(*thickness)) return std::nullopt;
    return "--most-thick had nothing to judge by: " +
           (thickness ? "only " + (*thickness)["cells"].dump() : std::string("no")) +
           " flat cells were seen in two different seconds";
}

}  // namespace citysplat::cli
