#pragma once

#include "core/file.hpp"

#include <array>
#include <cstddef>
#include <optional>

namespace citysplat::tiling {

/// What an object of the store is, told by its first eight bytes. These are part of the format on disk: they
/// never change, and a new meaning gets a new kind.
enum class ObjectKind {
    archive,     ///< points of a source (point_archive.hpp)
    payload,     ///< splats of a tile (splat_payload.hpp)
    generation,  ///< everything about one published generation (generation_record.hpp)
    plan,        ///< what the workers of a build are to make (plan_record.hpp)
    share,       ///< what one of them made
    mesh,        ///< triangles of a tile by the TSDF (splat_payload.hpp)
    imls         ///< by IMLS
};

using Magic = std::array<char, 8>;

inline constexpr std::array<Magic, 7> kObjectMagic{{{'C', 'S', 'P', 'O', 'I', 'N', 'T', '\n'},
                                                    {'C', 'S', 'P', 'L', 'A', 'T', 'S', '\n'},
                                                    {'C', 'S', 'G', 'E', 'N', 'E', 'R', '\n'},
                                                    {'C', 'S', 'P', 'L', 'A', 'N', '1', '\n'},
                                                    {'C', 'S', 'S', 'H', 'A', 'R', 'E', '\n'},
                                                    {'C', 'S', 'M', 'E', 'S', 'H', '1', '\n'},
                                                    {'C', 'S', 'I', 'M', 'L', 'S', '1', '\n'}}};

constexpr const Magic& magic_of(ObjectKind kind) { return kObjectMagic[static_cast<std::size_t>(kind)]; }

/// Nothing when the file does not begin like an object of ours.
inline std::optional<ObjectKind> kind_of(const File& file) {
    Magic magic{};
    file.read_some_at(0, std::as_writable_bytes(std::span(magic)));
    for (std::size_t kind = 0; kind < kObjectMagic.size(); ++kind)
        if (magic == kObjectMagic[kind]) return static_cast<ObjectKind>(kind);
    return std::nullopt;
}

}  // namespace citysplat::tiling
