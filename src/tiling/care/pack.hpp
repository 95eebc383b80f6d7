#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

/// A whole city as one file (docs/formats.md): header, objects one after the other, catalog, trailer with the
/// hash of everything before it. Written and read front to back.
namespace citysplat::tiling {

struct PackReport {
    std::int64_t generation = 0;
    std::uint64_t objects = 0, bytes = 0;
};

struct PackOptions {
    bool overwrite = false;                    ///< replace an existing file, if it is a packed city
    std::optional<std::int64_t> generation{};  ///< nothing: the latest
};

/// Packs a generation. The file appears complete or not at all; one that exists is not replaced
/// unless asked for (UsageError).
PackReport pack_city(const std::filesystem::path& city, const std::filesystem::path& file,
                     const CancelToken& cancel, Progress& progress, const PackOptions& options = {});

/// Makes a city in a new or empty directory. Every object is verified; the catalog comes last, so that an
/// unpack that was killed leaves no city but a directory in which the same unpack can be run again. One that
/// fails leaves nothing of its own.
PackReport unpack_city(const std::filesystem::path& file, const std::filesystem::path& city,
                       const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::tiling
