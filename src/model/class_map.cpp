#include "model/class_map.hpp"

#include "core/embedded.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/printable.hpp"
#include "core/toml_text.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <sstream>

namespace citysplat::embedded {
std::span<const Text> class_maps();  ///< datasets/classes/*.toml
}

namespace citysplat {

namespace {

constexpr std::array<std::string_view, 4> kGroupNames{"ground", "surface", "linear", "non_surface"};

SplatGroup group_from(std::string_view text, const std::string& where) {
    for (std::size_t i = 0; i < kGroupNames.size(); ++i)
        if (text == kGroupNames[i]) return static_cast<SplatGroup>(i);
    throw ConfigError(where + ": group \"" + std::string(text) +
                      "\" is not one of ground, surface, linear, non_surface");
}

std::uint32_t colour_from(std::string_view text, const std::string& where) {
    std::uint32_t rgb = 0;
    if (text.size() == 7 && text[0] == '#') {
        const auto [end, ec] = std::from_chars(text.data() + 1, text.data() + 7, rgb, 16);
        if (ec == std::errc() && end == text.data() + 7) return rgb;
    }
    throw ConfigError(where + ": colour \"" + std::string(text) + "\" is not of the form #rrggbb");
}

bool flag_from(const toml::node& node, const std::string& where) {
    if (!node.is_boolean()) throw ConfigError(where + ": dynamic must be true or false");
    return node.as_boolean()->get();
}

ClassInfo class_from(const toml::table& table, const std::string& where) {
    ClassInfo info;
    for (const auto& [key, value] : table) {
        const std::string_view k = key.str();
        if (k == "name")
            info.name = value.value_or("");
        else if (k == "group")
            info.group = group_from(value.value_or(""), where);
        else if (k == "dynamic")
            info.dynamic = flag_from(value, where);
        else if (k == "colour")
            info.rgb = colour_from(value.value_or(""), where);
        else if (k != "label")
            throw ConfigError(where + ": unknown key \"" + std::string(k) + "\"");
    }
    if (info.name.empty()) throw ConfigError(where + ": a class needs a name");
    return info;
}

/// As a TOML value, quoted and escaped.
std::string quoted(const std::string& text) {
    std::ostringstream out;
    out << toml::value<std::string>(text);
    return out.str();
}

void append_class(std::string& out, const ClassInfo& info) {
    char colour[16];
    std::snprintf(colour, sizeof colour, "#%06x", info.rgb & 0xffffffu);
    out += "name = " + quoted(info.name) + "\ngroup = \"" +
           std::string(kGroupNames[static_cast<std::size_t>(info.group)]) + "\"\n" +
           (info.dynamic ? "dynamic = true\n" : "") + "colour = \"" + colour + "\"\n";
}

}  // namespace

ClassMap::ClassMap(std::string name, int version, std::map<std::uint16_t, ClassInfo> classes,
                   ClassInfo unlisted)
    : name_(std::move(name)),
      version_(version),
      classes_(std::move(classes)),
      unlisted_(std::move(unlisted)) {
    if (unlisted_.name.empty()) unlisted_.name = "unlabelled";
}

const ClassInfo& ClassMap::at(std::uint16_t label) const {
    const auto found = classes_.find(label);
    return found == classes_.end() ? unlisted_ : found->second;
}

ClassMap ClassMap::parse(std::string_view text, std::string_view origin) {
    const std::string where(origin);
    const toml::table root = parse_toml(text, where);
    ClassInfo unlisted{"unlabelled", SplatGroup::surface, false, 0x808080};
    if (const auto* table = root["unlisted"].as_table())
        unlisted = class_from(*table, where + ": [unlisted]");
    std::map<std::uint16_t, ClassInfo> classes;
    if (const auto* list = root["class"].as_array()) {
        for (const auto& item : *list) {
            const auto* table = item.as_table();
            const auto label = table ? whole_number<std::uint16_t>(table->get("label")) : std::nullopt;
            if (!label) throw ConfigError(where + ": every [[class]] needs a label from 0 to 65535");
            const std::string at = where + ": class " + std::to_string(*label);
            if (!classes.emplace(*label, class_from(*table, at)).second)
                throw ConfigError(at + " is listed twice");
        }
    }
    if (classes.empty() && !root.contains("unlisted"))
        throw ConfigError(where + ": neither [[class]] entries nor [unlisted]; this is not a class map");
    const auto version = root.contains("version") ? whole_number<int>(root.get("version")) : 1;
    if (!version) throw ConfigError(where + ": version must be a whole number");
    for (const auto& [key, value] : root)
        if (const std::string_view k = key.str();
            k != "name" && k != "version" && k != "class" && k != "unlisted")
            throw ConfigError(where + ": unknown key \"" + std::string(k) + "\"");
    return ClassMap(root["name"].value_or(where), *version, std::move(classes), std::move(unlisted));
}

std::vector<std::string> ClassMap::builtin_names() {
    std::vector<std::string> names{"none"};
    for (const auto& text : embedded::class_maps()) names.emplace_back(text.name);
    return names;
}

ClassMap ClassMap::load(std::string_view name_or_path) {
    if (name_or_path == "none") return {};
    for (const auto& text : embedded::class_maps())
        if (text.name == name_or_path) return parse(text.content, std::string(text.name) + ".toml");
    const std::filesystem::path path(name_or_path);
    if (!std::filesystem::exists(path)) {
        std::string known;
        for (const auto& name : builtin_names()) known += (known.empty() ? "" : ", ") + name;
        throw ConfigError("class map \"" + std::string(name_or_path) + "\" is neither built in (" + known +
                          ") nor a file");
    }
    return parse(read_text_file(path), as_utf8(path.string()));
}

std::string ClassMap::to_toml() const {
    std::string out =
        "name = " + quoted(name_) + "\nversion = " + std::to_string(version_) + "\n\n[unlisted]\n";
    append_class(out, unlisted_);
    for (const auto& [label, info] : classes_) {
        out += "\n[[class]]\nlabel = " + std::to_string(label) + "\n";
        append_class(out, info);
    }
    return out;
}

void ClassMap::add_to(Hasher& hasher) const {
    const auto add = [&](const ClassInfo& info) { hasher.number(info.group).number(info.dynamic); };
    add(unlisted_);
    hasher.number(static_cast<std::uint64_t>(classes_.size()));
    for (const auto& [label, info] : classes_) {
        hasher.number(label);
        add(info);
    }
}

}  // namespace citysplat
