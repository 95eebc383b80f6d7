#pragma once

#include <string>

namespace citysplat::cli {

/// What --version prints: the program, what it was made from, and the formats it writes. One JSON object on
/// request.
std::string version_text(bool json);

}  // namespace citysplat::cli
