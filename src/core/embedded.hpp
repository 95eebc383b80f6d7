#pragma once

#include <string_view>

namespace citysplat::embedded {

/// A text file compiled into the program by citysplat_embed_text() (cmake/CitysplatEmbed.cmake).
struct Text {
    std::string_view name, content;
};

}  // namespace citysplat::embedded
