#pragma once

#include <span>
#include <string_view>

/// Text files compiled into the program by citysplat_embed_text() (cmake/CitysplatEmbed.cmake).
namespace citysplat::embedded {

struct Text {
    std::string_view name, content;
};

std::span<const Text> class_maps();  ///< datasets/classes/*.toml
std::span<const Text> sensors();     ///< datasets/sensors/*.toml

}  // namespace citysplat::embedded
