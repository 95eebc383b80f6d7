#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"

#include <cstdint>
#include <filesystem>

/// A whole city as one file (docs/formats.md): header, objects one after the other, catalog, trailer with the
/// hash of everything before it. Written and read front to back.
namespace citysplat::tiling {

struct PackReport {
    std::int64_t generation = 0;
    std::uint64_t objects = 0, bytes = 0;
};

/// Packs the latest generation. The file appears complete or not at all.
PackReport pack_city(const std::filesystem::path& city, const std::filesystem::path& file,
                     const CancelToken& cancel, Progress& progress);

/// Makes a city in a new or empty directory. Every object is verified; the catalog comes last, so that an
/// interrupted unpack leaves no city.
PackReport unpack_city(const std::filesystem::path& file, const std::filesystem::path& city,
                       const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::tiling
