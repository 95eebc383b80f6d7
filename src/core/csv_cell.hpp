#pragma once

#include <string>
#include <string_view>

namespace citysplat {

/// A name from somewhere as one cell of a CSV table: what would break the table becomes a '_' or is quoted.
inline std::string csv_cell(std::string_view text) {
    std::string safe;
    for (const char c : text) safe += c == '"' || static_cast<unsigned char>(c) < 32 ? '_' : c;
    return safe.find_first_of(",;") == std::string::npos ? safe : "\"" + safe + "\"";
}

}  // namespace citysplat
