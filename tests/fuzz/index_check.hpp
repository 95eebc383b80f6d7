#pragma once

#include "core/hash.hpp"
#include "fuzz.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <span>
#include <string>

namespace citysplat::fuzz {

/// The bytes as the text of an index whose checksum fits its list, so that only the checks of its values
/// stand in the way. What is no index stays as it is.
inline std::string sealed_index(const std::uint8_t* data, std::size_t size, const char* list) {
    std::string text(reinterpret_cast<const char*>(data), size);
    nlohmann::json index = nlohmann::json::parse(text, nullptr, false);
    if (!index.is_object() || !index.contains(list)) return text;
    const std::string items = index[list].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    index["checksum"] = hash_bytes(std::as_bytes(std::span(items.data(), items.size()))).hex();
    return index.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

inline void expect(bool promise) {
    if (!promise) std::abort();
}

}  // namespace citysplat::fuzz
