#include "splat/params/params_text.hpp"

#include "core/error.hpp"
#include "core/toml_text.hpp"

#include <charconv>

namespace citysplat::splat {
namespace {

constexpr std::size_t kGroups = 4;

/// The shortest text that reads back as the same number.
std::string text_of(double value) {
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    return {buffer, end};
}
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
template <class T>
std::string text_of(const std::array<T, kGroups>& values) {
    std::string text;
    for (const T value : values) text += (text.empty() ? "[" : ", ") + text_of(value);
    return text + "]";
}

template <class T>
constexpr const char* kind_of = std::is_same_v<T, bool>  ? "true or false"
                                : std::is_same_v<T, int> ? "a whole number"
                                                         : "a number";

[[noreturn]] void refuse(const std::string& where, std::string_view name, const std::string& expected) {
    throw ConfigError(where + ": " + std::string(name) + " must be " + expected);
}

template <class T>
void assign(T& field, const toml::node& node, const std::string& where, std::string_view name) {
    std::optional<T> value;
    if constexpr (std::is_same_v<T, int>)
        value = whole_number<int>(&node);
    else
        value = node.value<T>();
    if (!value) refuse(where, name, kind_of<T>);
    field = *value;
}
template <class T>
void assign(std::array<T, kGroups>& field, const toml::node& node, const std::string& where,
            std::string_view name) {
    const toml::array* values = node.as_array();
    if (!values || values->size() != kGroups)
        refuse(where, name, "four values, for ground, surface, linear and non-surface");
    for (std::size_t group = 0; group < kGroups; ++group)
        assign(field[group], *values->get(group), where, name);
}

template <class Keep>
std::string lines(const SplatParams& params, const Keep& keep) {
    std::string text;
    SplatParams::for_each_field(params, [&](std::string_view name, const auto& field, double, double) {
        const std::string line = std::string(name) + " = " + text_of(field) + "\n";
        if (keep(line)) text += line;
    });
    return text;
}

}  // namespace

void change_params(SplatParams& params, std::string_view text, std::string_view origin) {
    const std::string where(origin);
    toml::table table = parse_toml(text, where);
    SplatParams::for_each_field(params, [&](std::string_view name, auto& field, double, double) {
        const toml::node* node = table.get(name);
        if (!node) return;
        assign(field, *node, where, name);
        table.erase(name);
    });
    if (!table.empty())
        throw ConfigError(where + ": \"" + std::string(table.begin()->first.str()) +
                          "\" is not a splat parameter; docs/parameters.md lists them");
    try {
        params.validate();
    } catch (const ConfigError& e) {
        throw ConfigError(where + ": " + e.what());
    }
}

std::string params_text(const SplatParams& params) {
    return lines(params, [](const std::string&) { return true; });
}

std::string params_changes(const SplatParams& params) {
    const std::string usual = "\n" + params_text(SplatParams::of(params.method));
    return lines(params,
                 [&](const std::string& line) { return usual.find("\n" + line) == std::string::npos; });
}

}  // namespace citysplat::splat
