#include "adjust/thickness_words.hpp"

#include <nlohmann/json.hpp>

namespace citysplat::adjust {

std::string thickness_words(const Thickness& t) {
    nlohmann::json worst = nlohmann::json::array();
    for (const CellGap& gap : t.worst())
        worst.push_back({{"gap_m", gap.gap_m},
                         {"place", {gap.place_m.x, gap.place_m.y, gap.place_m.z}},
                         {"times_s", {gap.first_s, gap.second_s}},
                         {"drives", {gap.first_drive, gap.second_drive}}});
    return nlohmann::json{{"cells", t.cells()},
                          {"thick_share", t.share_thick()},
                          {"gap_p50_m", t.quantile_m(0.5)},
                          {"gap_p90_m", t.quantile_m(0.9)},
                          {"gap_p99_m", t.quantile_m(0.99)},
                          {"worst", worst}}
        .dump();
}

}  // namespace citysplat::adjust
