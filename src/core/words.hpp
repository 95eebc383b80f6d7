#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat {

/// The words for the values of an enumeration, in its order: what command lines take and what is kept on
/// disk. A word that was written once must not change.
template <class Enum, std::size_t kCount>
struct Words {
    std::array<const char*, kCount> words;

    constexpr const char* of(Enum value) const { return words[static_cast<std::size_t>(value)]; }
    constexpr std::optional<Enum> value(std::string_view word) const {
        for (std::size_t i = 0; i < kCount; ++i)
            if (word == words[i]) return static_cast<Enum>(i);
        return std::nullopt;
    }
    /// For lists of choices.
    std::vector<std::string> all() const { return {words.begin(), words.end()}; }
};

}  // namespace citysplat
