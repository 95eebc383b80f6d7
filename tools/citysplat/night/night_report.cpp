#include "citysplat/night/night_report.hpp"

#include "citysplat/context.hpp"
#include "core/bytes.hpp"
#include "core/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

namespace citysplat::cli {

using nlohmann::json;

namespace {

/// Text for HTML and XML: what has a meaning there is escaped, what is no character left out.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : as_utf8(text)) switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
        }
    return out;
}

std::string fixed(double value, int digits) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return text.data();
}

std::string text_in(const json& object, const char* key) {
    if (!object.is_object() || !object.contains(key)) return "";
    const json& value = object[key];
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::uint64_t number_in(const json& object, const char* key) {
    return object.is_object() && object.contains(key) && object[key].is_number()
               ? object[key].get<std::uint64_t>()
               : 0;
}

json tile_counts(const NightFacts& facts) {
    return facts.diff.is_object() ? facts.diff["tiles"]
                                  : json{{"added", 0}, {"changed", 0}, {"removed", 0}, {"same", 0}};
}

std::vector<json> clusters_of(const NightFacts& facts) {
    std::vector<json> clusters;
    if (facts.diff.is_object() && facts.diff.contains("surfaces"))
        for (const json& c : facts.diff["surfaces"]["clusters"]) clusters.push_back(c);
    return clusters;
}

/// Tiles that could not be made, as `work` and `publish` name them.
json failed_tiles(const NightFacts& facts) {
    for (const char* key : {"tiles_failed", "tiles_kept_old"})
        for (const StepResult& step : facts.steps)
            if (step.result.is_object() && step.result.contains(key) && step.result[key].is_array() &&
                !step.result[key].empty())
                return step.result[key];
    return json::array();
}

std::string base64(const std::string& bytes) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k)
            group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (int k = 0; k < 4; ++k)
            out +=
                i + static_cast<std::size_t>(k) <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

std::string svg_of(const std::vector<MapTile>& tiles) {
    if (tiles.empty()) return "<p>There are no tiles.</p>\n";
    double min_x = tiles[0].x_m, min_y = tiles[0].y_m, max_x = min_x, max_y = min_y;
    for (const MapTile& t : tiles) {
        min_x = std::min(min_x, t.x_m), min_y = std::min(min_y, t.y_m);
        max_x = std::max(max_x, t.x_m + t.size_m), max_y = std::max(max_y, t.y_m + t.size_m);
    }
    std::array<std::string, 4> paths;
    for (const MapTile& t : tiles)
        paths[static_cast<std::size_t>(t.state)] +=
            "M" + fixed(t.x_m - min_x, 2) + " " + fixed(max_y - t.y_m - t.size_m, 2) + "h" +
            fixed(t.size_m, 2) + "v" + fixed(t.size_m, 2) + "h-" + fixed(t.size_m, 2) + "z";
    constexpr std::array<const char*, 4> kNames{"same", "changed", "added", "removed"};
    std::string svg = "<svg role=\"img\" aria-label=\"map of tiles\" viewBox=\"0 0 " +
                      fixed(max_x - min_x, 2) + " " + fixed(max_y - min_y, 2) + "\">\n";
    for (std::size_t i = 0; i < paths.size(); ++i)
        if (!paths[i].empty())
            svg += std::string("<path class=\"") + kNames[i] + "\" d=\"" + paths[i] + "\"/>\n";
    return svg +
           "</svg>\n<p class=\"key\"><span class=\"same\">same</span> <span class=\"changed\">changed</span> "
           "<span class=\"added\">new</span> <span class=\"removed\">gone</span>, north is up, " +
           fixed(max_x - min_x, 0) + " × " + fixed(max_y - min_y, 0) + " m</p>\n";
}

std::string row(const std::vector<std::string>& cells, const char* kind = "td") {
    std::string text = "<tr>";
    for (const std::string& cell : cells)
        text += std::string("<") + kind + ">" + escaped(cell) + "</" + kind + ">";
    return text + "</tr>\n";
}

constexpr const char* kStyle =
    "body{font:15px/1.45 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "table{border-collapse:collapse;margin:.5em 0}td,th{border:1px solid #ccc;padding:.2em "
    ".6em;text-align:left}"
    "code{font-size:13px;overflow-wrap:anywhere}svg{width:100%;max-height:40em;background:#fafafa;border:1px "
    "solid #ccc}"
    "path{stroke:#fff;stroke-width:1}.same{fill:#c9d3da;color:#566}.changed{fill:#e8a33d;color:#a60}"
    ".added{fill:#3a9d5d;color:#274}.removed{fill:#c8443c;color:#a22}.key span{font-weight:bold}"
    "img{max-width:49%;border:1px solid #ccc}.bad{color:#a22}.good{color:#274}";

std::string steps_table(const NightFacts& facts) {
    std::string text = "<table>\n" + row({"step", "result", "seconds", "peak memory"}, "th");
    for (const StepResult& s : facts.steps) {
        const std::uint64_t memory = number_in(s.result, "peak_rss_bytes");
        text += row({s.name,
                     s.ok()         ? "done"
                     : s.code == 76 ? "held back"
                                    : "exit code " + std::to_string(s.code),
                     fixed(s.seconds, 2), memory ? format_bytes(memory) : ""});
    }
    text += "</table>\n<details><summary>The commands, to run alone</summary>\n";
    for (const StepResult& s : facts.steps)
        text += "<p><code>" + escaped(shell_line(s.command)) + "</code></p>\n";
    return text + "</details>\n";
}

std::string gates_table(const json& gates) {
    if (gates.empty()) return "";
    std::string text = "<h2>Gates</h2>\n<table>\n" + row({"gate", "measured", "allowed", "", ""}, "th");
    for (const json& g : gates)
        text +=
            row({text_in(g, "gate"), fixed(g["value"].get<double>(), 4), fixed(g["most"].get<double>(), 4),
                 g["holds"].get<bool>() ? "HOLDS" : "passes", text_in(g, "text")});
    return text + "</table>\n";
}

std::string changes_section(const NightFacts& facts) {
    const json& d = facts.diff;
    if (!facts.untold.empty())
        return "<p class=\"bad\">What has changed could not be told: " + escaped(facts.untold) + "</p>\n";
    if (!d.is_object()) return "<p>Nothing has changed since the last report.</p>\n";
    std::string text =
        "<h2>Changes</h2>\n<table>\n" + row({"input", "change", "points before", "points"}, "th");
    constexpr std::size_t kMost = 200;
    for (std::size_t i = 0; i < std::min(kMost, d["inputs"].size()); ++i) {
        const json& input = d["inputs"][i];
        text +=
            row({text_in(input, "path"), text_in(input, "change"),
                 format_count(number_in(input, "points_before")), format_count(number_in(input, "points"))});
    }
    text += "</table>\n<table>\n" + row({"tiles because of", "number"}, "th");
    for (const auto& [reason, number] : d["reasons"].items())
        text += row({reason, format_count(number.get<std::uint64_t>())});
    text += "</table>\n";
    if (d.contains("splat_diff")) {
        text += "<table>\n" + row({"class", "splats only before", "splats only after"}, "th");
        for (const auto& [name, c] : d["splat_diff"]["classes"].items())
            text += row({name, format_count(number_in(c, "gone")), format_count(number_in(c, "added"))});
        text += "</table>\n";
    }
    if (!d.contains("surfaces")) return text;
    const json& a = d["surfaces"]["areas_m2"];
    text += "<h2>Surfaces</h2>\n<p>" + fixed(a["seen_again"].get<double>(), 0) + " m² were seen again, " +
            fixed(a["not_seen"].get<double>(), 0) + " m² were not seen, " +
            fixed(a["seen_first"].get<double>(), 0) + " m² were seen for the first time.</p>\n<table>\n" +
            row({"", "class", "area m²", "volume m³", "distance m", "× detection", "at"}, "th");
    const auto clusters = clusters_of(facts);
    for (std::size_t i = 0; i < std::min(kMost, clusters.size()); ++i) {
        const json& c = clusters[i];
        const auto value = [&c](const char* key, int digits) { return fixed(c[key].get<double>(), digits); };
        text +=
            row({text_in(c, "kind"), text_in(c, "class"), value("area_m2", 2), value("volume_m3", 2),
                 value("distance_m", 2), value("significance", 1),
                 fixed(c["centre_m"][0].get<double>(), 1) + " " + fixed(c["centre_m"][1].get<double>(), 1) +
                     " " + fixed(c["centre_m"][2].get<double>(), 1)});
    }
    return text + "</table>\n";
}

std::string pictures_section(const NightFacts& facts) {
    std::string text;
    for (const PicturePair& p : facts.pictures) {
        text += "<h3>" + escaped(p.title) + "</h3>\n<p>";
        for (const auto& [bytes, what] : {std::pair(&p.before, "before"), std::pair(&p.after, "after")})
            if (!bytes->empty())
                text += std::string("<img alt=\"") + what + "\" src=\"data:image/png;base64," +
                        base64(*bytes) + "\">";
        text += "</p>\n";
    }
    return text.empty() ? text : "<h2>The most changed places, before and after</h2>\n" + text;
}

std::string headline(const NightFacts& facts) {
    const std::string generation = text_in(facts.generation, "generation");
    if (facts.status == "published") return "generation " + generation + " was published";
    if (facts.status == "unchanged") return "nothing new, generation " + generation + " stays";
    if (facts.status == "held_back") return "held back by a gate, generation " + generation + " stays";
    return facts.status + (generation.empty() ? "" : ", generation " + generation + " stays");
}

}  // namespace

const StepResult* NightFacts::step(const std::string& name) const {
    for (const StepResult& s : steps)
        if (s.name == name) return &s;
    return nullptr;
}

json NightFacts::gates() const {
    const StepResult* published = step("publish");
    return published && published->result.is_object() && published->result.contains("gates")
               ? published->result["gates"]
               : json::array();
}

std::string html_of(const NightFacts& f) {
    std::string text = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" +
                       escaped(f.city) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" +
                       escaped(f.city) + "</h1>\n<p class=\"" + (f.succeeded() ? "good" : "bad") +
                       "\"><strong>" + escaped(headline(f)) + "</strong> (" + utc_text(f.begun_s) + " to " +
                       utc_text(f.ended_s) + ")</p>\n";
    if (!f.message.empty()) text += "<p class=\"bad\">" + escaped(f.message) + "</p>\n";
    const json& g = f.generation;
    if (g.is_object())
        text += "<table>\n" + row({"splats", format_count(number_in(g, "splats"))}) +
                row({"tiles", format_count(number_in(g, "tiles"))}) +
                row({"points", format_count(number_in(g, "points"))}) + row({"note", text_in(g, "note")}) +
                row({"digest", text_in(g, "digest")}) + row({"program", CITYSPLAT_VERSION}) + "</table>\n";
    text += gates_table(f.gates()) + "<h2>Map</h2>\n" + svg_of(f.map) + changes_section(f) +
            pictures_section(f) + "<h2>Steps</h2>\n" + steps_table(f);
    const json failed = failed_tiles(f);
    if (!failed.empty()) {
        text += "<h2>Tiles that could not be made</h2>\n<table>\n";
        for (const json& t : failed) text += row({text_in(t, "tile"), text_in(t, "message")});
        text += "</table>\n";
    }
    return text + "</body>\n</html>\n";
}

std::string summary_of(const NightFacts& f) {
    std::vector<std::string> lines{f.city + ": " + headline(f),
                                   "from " + utc_text(f.begun_s) + " to " + utc_text(f.ended_s)};
    if (!f.message.empty()) {
        std::istringstream message(f.message);
        std::string line;
        for (int i = 0; i < 4 && std::getline(message, line); ++i) lines.push_back(line);
    }
    if (f.generation.is_object())
        lines.push_back(format_count(number_in(f.generation, "splats")) + " splats in " +
                        format_count(number_in(f.generation, "tiles")) + " tiles, digest " +
                        text_in(f.generation, "digest"));
    const json t = tile_counts(f);
    lines.push_back(f.untold.empty()
                        ? format_count(number_in(t, "added")) + " tiles new, " +
                              format_count(number_in(t, "changed")) + " changed, " +
                              format_count(number_in(t, "removed")) + " gone"
                        : "what has changed could not be told: " + f.untold.substr(0, f.untold.find('\n')));
    for (const json& g : f.gates()) lines.push_back("gate " + text_in(g, "gate") + ": " + text_in(g, "text"));
    const auto clusters = clusters_of(f);
    for (std::size_t i = 0; i < std::min<std::size_t>(5, clusters.size()); ++i)
        lines.push_back(text_in(clusters[i], "kind") + ": " + fixed(clusters[i]["area_m2"].get<double>(), 1) +
                        " m2 of " + text_in(clusters[i], "class") + " at " +
                        fixed(clusters[i]["centre_m"][0].get<double>(), 1) + " " +
                        fixed(clusters[i]["centre_m"][1].get<double>(), 1));
    if (clusters.size() > 5) lines.push_back("and " + format_count(clusters.size() - 5) + " other places");
    for (const StepResult& s : f.steps)
        lines.push_back(s.name + ": " + (s.ok() ? "done" : "exit code " + std::to_string(s.code)) + ", " +
                        fixed(s.seconds, 1) + " s");
    constexpr std::size_t kMostLines = 25, kMostColumns = 100;
    if (lines.size() > kMostLines) lines.resize(kMostLines);
    std::string text;
    for (std::string& line : lines) {
        if (line.size() > kMostColumns) line.resize(kMostColumns);
        text += as_utf8(line) + "\n";
    }
    return text;
}

json json_of(const NightFacts& f) {
    json steps = json::array();
    for (const StepResult& s : f.steps)
        steps.push_back({{"step", s.name},
                         {"command", s.command},
                         {"code", s.code},
                         {"seconds", s.seconds},
                         {"result", s.result}});
    return {{"city", f.city},
            {"status", f.status},
            {"code", f.code},
            {"message", f.message},
            {"begun", utc_text(f.begun_s)},
            {"ended", utc_text(f.ended_s)},
            {"generation", f.generation.is_object() ? f.generation["generation"] : json()},
            {"digest", f.generation.is_object() ? f.generation["digest"] : json()},
            {"gates", f.gates()},
            {"tiles", tile_counts(f)},
            {"diff", f.diff},
            {"tiles_failed", failed_tiles(f)},
            {"steps", steps}};
}

std::string junit_of(const NightFacts& f) {
    std::string cases;
    std::size_t tests = 0, failures = 0;
    const auto add = [&](const std::string& suite, const std::string& name, double seconds,
                         const std::string& failure) {
        ++tests;
        cases += "  <testcase classname=\"" + escaped(suite) + "\" name=\"" + escaped(name) + "\" time=\"" +
                 fixed(seconds, 3) + "\"";
        if (failure.empty()) {
            cases += "/>\n";
            return;
        }
        ++failures;
        cases += ">\n    <failure message=\"" + escaped(failure) + "\"/>\n  </testcase>\n";
    };
    for (const StepResult& s : f.steps) add("step", s.name, s.seconds, s.ok() ? "" : s.error());
    for (const json& g : f.gates())
        add("gate", text_in(g, "gate"), 0, g["holds"].get<bool>() ? text_in(g, "text") : "");
    for (const json& t : failed_tiles(f)) add("tile", text_in(t, "tile"), 0, text_in(t, "message"));
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + escaped(f.city) +
           "\" tests=\"" + std::to_string(tests) + "\" failures=\"" + std::to_string(failures) +
           "\" time=\"" + fixed(static_cast<double>(f.ended_s - f.begun_s), 0) + "\">\n" + cases +
           "</testsuite>\n";
}

std::string prometheus_of(const NightFacts& f, std::int64_t last_success_s) {
    std::string label;
    for (const char c : as_utf8(f.city))
        label += c == '"' || c == '\\' ? std::string("\\") + c : c == '\n' ? "\\n" : std::string(1, c);
    std::string text;
    const auto metric = [&](const std::string& name, const std::string& help, const std::string& value,
                            const std::string& more = "") {
        const std::string full = "citysplat_" + name;
        if (text.find("# TYPE " + full + " ") == std::string::npos)
            text += "# HELP " + full + " " + help + "\n# TYPE " + full + " gauge\n";
        text += full + "{city=\"" + label + "\"" + more + "} " + value + "\n";
    };
    metric("success", "1 when the last night ended well.", f.succeeded() && f.code == 0 ? "1" : "0");
    metric("exit_code", "Exit code of the last night.", std::to_string(f.code));
    metric("last_run_timestamp_seconds", "When the last night ended.", std::to_string(f.ended_s));
    metric("last_success_timestamp_seconds", "When the last good night ended; 0 if never.",
           std::to_string(last_success_s));
    for (const StepResult& s : f.steps)
        metric("duration_seconds", "Seconds that a step took.", fixed(s.seconds, 3),
               ",stage=\"" + s.name + "\"");
    if (f.generation.is_object())
        for (const char* key : {"generation", "tiles", "splats", "points", "payload_bytes"})
            metric(key, "Of the latest generation.", std::to_string(number_in(f.generation, key)));
    const json t = tile_counts(f);
    for (const char* key : {"added", "changed", "removed"})
        metric("tiles_differing", "Tiles that differ since the last report.",
               std::to_string(number_in(t, key)), std::string(",change=\"") + key + "\"");
    metric("tiles_failed", "Tiles that could not be made.", std::to_string(failed_tiles(f).size()));
    for (const json& g : f.gates())
        metric("gate_value", "What a gate measured.", fixed(g["value"].get<double>(), 6),
               ",gate=\"" + text_in(g, "gate") + "\"");
    if (f.diff.is_object() && f.diff.contains("surfaces"))
        for (const auto& [kind, area] : f.diff["surfaces"]["areas_m2"].items())
            metric("surface_square_metres", "Surface by what became of it.", fixed(area.get<double>(), 2),
                   ",kind=\"" + kind + "\"");
    return text;
}

}  // namespace citysplat::cli
