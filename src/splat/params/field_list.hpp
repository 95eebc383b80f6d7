#pragma once

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/number_range.hpp"

#include <cstdint>
#include <string>
#include <type_traits>

/// What follows from a list of parameters, `for_each_field(params, visit(name, field, least, most))` of their
/// struct. Fields are bool, int or double, or arrays of them.
namespace citysplat::splat {

/// Calls each(value) for a field, or for every value of an array.
template <class Field, class Each>
void for_each_value(const Field& field, const Each& each) {
    if constexpr (requires { field.size(); })
        for (const auto& value : field) each(value);
    else
        each(field);
}

/// Throws ConfigError naming the first field that is out of its range. `what` is for the message: "mesh".
template <class Params>
void check_fields(const Params& params, const std::string& what) {
    Params::for_each_field(params, [&what](const char* name, const auto& field, double least, double most) {
        for_each_value(field, [&](auto value) {
            const NumberRange range{least, most};
            if (range.contains(static_cast<double>(value))) return;
            throw ConfigError(what + " parameter " + name + " must be " + range.text() + ", not " +
                              format_number(static_cast<double>(value)));
        });
    });
}

/// Adds the names and values of all fields, which are no arrays.
template <class Params>
void hash_fields(const Params& params, Hasher& hasher) {
    Params::for_each_field(params, [&hasher](const char* name, const auto& field, double, double) {
        hasher.text(name);
        if constexpr (std::is_same_v<std::decay_t<decltype(field)>, double>)
            hasher.number(field);
        else
            hasher.number(static_cast<std::int32_t>(field));
    });
}

}  // namespace citysplat::splat
