#include "citysplat/generations/diff_report.hpp"

#include "core/bytes.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <map>

namespace citysplat::cli {

using nlohmann::json;

namespace {

std::string class_name(const ClassMap& classes, std::uint16_t label) {
    const auto found = classes.classes().find(label);
    return found == classes.classes().end() ? "label " + std::to_string(label) : found->second.name;
}

json place(Vec3d v) { return {v.x, v.y, v.z}; }

json counts_json(const diff::SplatCounts& c) {
    return {{"before", c.before}, {"after", c.after}, {"gone", c.gone}, {"added", c.added}};
}

/// The first lines of a list, and how many more there are.
constexpr std::size_t kMostLines = 20;
template <class Line>
std::string some_lines(const json& list, const Line& line) {
    std::string text;
    for (std::size_t i = 0; i < std::min(kMostLines, list.size()); ++i) text += "  " + line(list[i]) + "\n";
    if (list.size() > kMostLines)
        text += "  and " + format_count(list.size() - kMostLines) + " more (--json has all)\n";
    return text;
}

std::string count(const json& number) { return format_count(number.get<std::uint64_t>()); }

std::string splats_text(const json& s) {
    return "splats that differ: " + count(s["gone"]) + " only before, " + count(s["added"]) +
           " only after, of " + count(s["before"]) + " and " + count(s["after"]) +
           " in the tiles that differ\n";
}

std::string cluster_line(const json& c) {
    std::array<char, 240> line{};
    const auto number = [&c](const char* key) { return c[key].get<double>(); };
    const json& at = c["centre_m"];
    std::snprintf(line.data(), line.size(),
                  "%-6s %7.2f m² %-14s at %.1f %.1f %.1f, %.2f m³, %s%.2f m, %.1f × detection",
                  c["kind"].get<std::string>().c_str(), number("area_m2"),
                  c["class"].get<std::string>().substr(0, 14).c_str(), at[0].get<double>(),
                  at[1].get<double>(), at[2].get<double>(), number("volume_m3"),
                  c["kind"] == "moved" ? "by " : "other surface at ", number("distance_m"),
                  number("significance"));
    return line.data();
}

std::string surfaces_text(const json& s) {
    const json& a = s["areas_m2"];
    std::array<char, 240> line{};
    std::snprintf(
        line.data(), line.size(),
        "surfaces: %.0f m² seen again, %.1f gone, %.1f new, %.1f moved; %.0f not seen by the new drives, "
        "%.0f seen first\n",
        a["seen_again"].get<double>(), a["gone"].get<double>(), a["new"].get<double>(),
        a["moved"].get<double>(), a["not_seen"].get<double>(), a["seen_first"].get<double>());
    return line.data() + count(s["clusters"].size()) + " places changed\n" +
           some_lines(s["clusters"], cluster_line);
}

}  // namespace

json diff_json(const diff::CatalogDiff& d) {
    json inputs = json::array(), tiles = json::array();
    std::map<std::string, std::uint64_t> reasons;
    for (const auto& i : d.inputs)
        inputs.push_back({{"path", i.path},
                          {"change", diff::kChanges.of(i.change)},
                          {"points_before", i.points_before},
                          {"points", i.points}});
    for (const auto& t : d.tiles) {
        const bool removed = t.change == diff::Change::removed;
        const std::string reason = removed ? "no points" : tiling::text_of(t.reason);
        ++reasons[reason];
        tiles.push_back({{"tile", t.tile.text()},
                         {"change", diff::kChanges.of(t.change)},
                         {"reason", reason},
                         {"splats_before", t.splats_before},
                         {"splats", t.splats}});
    }
    return {{"inputs", inputs},
            {"tiles",
             {{"added", d.counts.added},
              {"changed", d.counts.changed},
              {"removed", d.counts.removed},
              {"same", d.counts.same}}},
            {"reasons", reasons},
            {"tile_changes", tiles}};
}

json diff_json(const diff::SplatDiff& d, const ClassMap& classes) {
    json result = counts_json(d.all), by_class = json::object(), tiles = json::object();
    for (const auto& [label, counts] : d.classes) by_class[class_name(classes, label)] = counts_json(counts);
    for (const auto& [tile, counts] : d.tiles) tiles[tile.text()] = counts_json(counts);
    result["classes"] = by_class;
    result["tiles"] = tiles;
    return result;
}

json diff_json(const diff::SurfaceDiff& d, const ClassMap& classes) {
    json clusters = json::array();
    for (const auto& c : d.clusters)
        clusters.push_back({{"kind", diff::kSurfaceChanges.of(c.kind)},
                            {"class", class_name(classes, c.label)},
                            {"area_m2", c.area_m2},
                            {"volume_m3", c.volume_m3},
                            {"distance_m", c.distance_m},
                            {"significance", c.significance},
                            {"looks", c.looks},
                            {"voxels", c.voxels},
                            {"centre_m", place(c.centre)},
                            {"min_m", place(c.min)},
                            {"max_m", place(c.max)}});
    const diff::SurfaceAreas& a = d.areas;
    return {{"clusters", clusters},
            {"areas_m2",
             {{"seen_again", a.seen_again},
              {"gone", a.gone},
              {"new", a.appeared},
              {"moved", a.moved},
              {"not_seen", a.not_seen},
              {"seen_first", a.seen_first}}}};
}

std::string diff_text(const json& d) {
    const auto side = [&d](const char* key) {
        const json& g = d[key];
        return "generation " + g["generation"].dump() + " of " + g["created"].get<std::string>() + ", " +
               count(g["splats"]) + " splats";
    };
    const json& t = d["tiles"];
    std::string text = side("from") + "\n" + side("to") + "\n" + count(d["inputs"].size()) +
                       " inputs differ\n" + some_lines(d["inputs"], [](const json& i) {
                           return i["change"].get<std::string>() + " " + i["path"].get<std::string>() + " (" +
                                  count(i["points_before"]) + " → " + count(i["points"]) + " points)";
                       });
    text += count(t["added"]) + " tiles added, " + count(t["changed"]) + " changed, " + count(t["removed"]) +
            " removed, " + count(t["same"]) + " the same\n";
    for (const auto& [reason, number] : d["reasons"].items())
        text += "  " + count(number) + " because of: " + reason + "\n";
    if (d.contains("splat_diff")) text += splats_text(d["splat_diff"]);
    if (d.contains("surfaces")) text += surfaces_text(d["surfaces"]);
    return text;
}

}  // namespace citysplat::cli
