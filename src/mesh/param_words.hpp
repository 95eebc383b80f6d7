#pragma once

#include "core/error.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

/// Parameters that have a list of fields (core/field_list.hpp), in words.
namespace citysplat::mesh {

/// The fields that differ from the defaults.
template <class Params>
nlohmann::json changed_fields(const Params& params) {
    nlohmann::json usual = nlohmann::json::object(), words = nlohmann::json::object();
    const Params defaults;
    Params::for_each_field(defaults,
                           [&usual](const char* name, auto field, double, double) { usual[name] = field; });
    Params::for_each_field(params, [&](const char* name, auto field, double, double) {
        if (usual[name] != nlohmann::json(field)) words[name] = field;
    });
    return words;
}

/// What changed_fields() told.
template <class Params>
void take_fields(Params& params, const nlohmann::json& words) {
    Params::for_each_field(params, [&words](const char* name, auto& field, double, double) {
        field = words.value(name, field);
    });
}

template <class Params>
std::string names_of_fields(const Params& params) {
    std::string names;
    Params::for_each_field(params, [&names](const char* name, const auto&, double, double) {
        names += (names.empty() ? "" : ", ") + std::string(name);
    });
    return names;
}

/// Gives the field of that name the number in `text`; false when there is no such field. `what` is for the
/// message of the UsageError about a text that is none.
template <class Params>
bool change_field(Params& params, std::string_view wanted, std::string_view text, const std::string& what) {
    bool found = false;
    Params::for_each_field(params, [&](const char* name, auto& field, double, double) {
        if (wanted != name) return;
        found = true;
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        using Field = std::decay_t<decltype(field)>;
        constexpr bool kWhole = !std::is_same_v<Field, double>;
        if (error != std::errc{} || end != text.data() + text.size() ||
            (kWhole && value != static_cast<double>(static_cast<int>(value))))
            throw UsageError(what + ": \"" + std::string(text) + "\" is no " +
                             (kWhole ? "whole number" : "number"));
        field = static_cast<Field>(value);
    });
    return found;
}

}  // namespace citysplat::mesh
