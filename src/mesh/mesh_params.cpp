#include "mesh/mesh_params.hpp"

#include "core/error.hpp"

#include <sstream>
#include <string>
#include <type_traits>

namespace citysplat::mesh {

namespace {

std::string text_of(double number) {
    std::ostringstream out;
    out << number;
    return out.str();
}

}  // namespace

void MeshParams::validate() const {
    for_each_field(*this, [](const char* name, const auto& field, double least, double most) {
        const auto value = static_cast<double>(field);
        if (!(value >= least && value <= most))
            throw ConfigError("mesh parameter " + std::string(name) + " is " + text_of(value) +
                              "; it can be from " + text_of(least) + " to " + text_of(most));
    });
}

void MeshParams::add_to(Hasher& hasher) const {
    for_each_field(*this, [&hasher](const char* name, const auto& field, double, double) {
        hasher.text(name);
        if constexpr (std::is_same_v<std::decay_t<decltype(field)>, double>)
            hasher.number(field);
        else
            hasher.number(static_cast<std::int32_t>(field));
    });
}

}  // namespace citysplat::mesh
