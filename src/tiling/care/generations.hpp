#pragma once

#include "tiling/store/catalog.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// How people call generations: by number, by a name they gave (a tag), or by a date.
namespace citysplat::tiling {

/// The generation that is meant by
///   "latest"                             the latest one
///   "12"                                 a number
///   "2026-11-16", "2026-11-16T03:00Z"    the city as it was at the end of that day, or at that minute or
///                                        second (UTC): the last generation that existed then
///   anything else                        a tag
/// Throws UsageError that says what there is when there is none.
GenerationRow find_generation(Catalog& catalog, const std::string& name);

/// The same for verbs that are given a city and perhaps a name: nothing means the latest, whatever it will
/// be.
std::optional<std::int64_t> generation_number(const std::filesystem::path& city, const std::string& name);

/// The names of a generation, sorted.
std::vector<std::string> tags_of(const GenerationRow& generation);

/// Throws UsageError unless this can be a tag: 1 to 64 letters, digits, dots, dashes and underscores, which
/// could be neither a number nor a date nor an option, and is not "latest".
void check_tag(const std::string& tag);

struct TagReport {
    std::int64_t generation = 0;  ///< that has the tag now, or had it
    std::int64_t before = 0;      ///< that had it before; 0: none did
};

/// Gives a generation (default: the latest) a name. A name that another generation has is moved only when
/// asked. Throws UsageError otherwise, BusyError while somebody builds.
TagReport set_tag(const std::filesystem::path& city, const std::string& tag, const std::string& generation,
                  bool move);
/// Takes a name away. Throws UsageError when no generation has it.
TagReport remove_tag(const std::filesystem::path& city, const std::string& tag);

}  // namespace citysplat::tiling
