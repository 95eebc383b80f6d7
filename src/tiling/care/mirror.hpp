#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/store/city_paths.hpp"

#include <cstdint>
#include <filesystem>

namespace citysplat::tiling {

struct MirrorReport {
    std::int64_t generation = 0;  ///< the latest one of the copy
    std::uint64_t generations = 0;
    std::uint64_t objects = 0, objects_copied = 0, bytes_copied = 0;
    std::uint64_t objects_healed = 0;  ///< of those copied: the copy had one with other bytes
    bool changed = false;              ///< false: the copy had all of it
};

/// Brings a copy of a city up to date: all generations that the city has now. Objects come first, durably and
/// each held against its name; the catalog comes last, by one rename. So a reader of the copy, and whoever
/// finds it after a kill or a power cut, sees whole generations: the old ones or the new ones. Nothing is
/// deleted: objects that no generation of the copy needs any more go with `gc` there. An object that the copy
/// has with its size counts as whole; `deep` reads it, and copies it again when its bytes are others,
/// and holds the rows of the copy's catalog against the records.
///
/// The city is only read; its generations are pinned meanwhile, and builders may go on. `copy` is a new or
/// empty directory, or one that mirror made. Throws ConfigError when it holds anything else, or generations
/// that the city never had; BusyError while somebody else writes to it; CorruptionError naming an object of
/// the city that is damaged.
MirrorReport mirror_city(const std::filesystem::path& city, const std::filesystem::path& copy,
                         const CancelToken& cancel, Progress& progress, bool deep = false);

/// Whether mirror made this directory.
bool is_mirror(const CityPaths& paths);

}  // namespace citysplat::tiling
