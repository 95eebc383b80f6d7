#include "citysplat/thickness_report.hpp"

#include "core/bytes.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>

namespace citysplat::cli {

using adjust::CellGap;
using adjust::Thickness;

namespace {

/// Fewer cells say nothing about a city.
constexpr std::uint64_t kLeastCells = 50;

}  // namespace

nlohmann::json thickness_json(const Thickness& t) {
    nlohmann::json worst = nlohmann::json::array();
    for (const CellGap& gap : t.worst())
        worst.push_back({{"gap_m", gap.gap_m},
                         {"place", {gap.place_m.x, gap.place_m.y, gap.place_m.z}},
                         {"times_s", {gap.first_s, gap.second_s}},
                         {"drives", {gap.first_drive, gap.second_drive}}});
    return {{"cells", t.cells()},
            {"thick_share", t.share_thick()},
            {"gap_p50_m", t.quantile_m(0.5)},
            {"gap_p90_m", t.quantile_m(0.9)},
            {"gap_p99_m", t.quantile_m(0.99)},
            {"worst", worst}};
}

std::string thickness_text(const Thickness& t) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "%.2f %% of %s flat cells thicker than 10 cm (gap p50 %.1f, p90 %.1f, p99 %.1f cm)",
                  100 * t.share_thick(), format_count(t.cells()).c_str(), 100 * t.quantile_m(0.5),
                  100 * t.quantile_m(0.9), 100 * t.quantile_m(0.99));
    return text.data();
}

std::string worst_text(const Thickness& t) {
    std::string text;
    for (const CellGap& gap : t.worst()) {
        std::array<char, 160> line{};
        std::snprintf(line.data(), line.size(), "  %.1f cm at %.1f %.1f %.1f between %.1f s and %.1f s\n",
                      100 * gap.gap_m, gap.place_m.x, gap.place_m.y, gap.place_m.z, gap.first_s,
                      gap.second_s);
        text += line.data();
    }
    return text;
}

std::optional<std::string> thickness_warning(const Thickness& t) {
    if (t.cells() < kLeastCells || t.share_thick() <= adjust::kMostThick) return std::nullopt;
    std::string worst = worst_text(t);
    if (!worst.empty()) worst.pop_back();
    return "surfaces are thick because passes disagree: " + thickness_text(t) +
           "; the poses are not good enough, citysplat adjust corrects them. The worst places:\n" + worst;
}

}  // namespace citysplat::cli
