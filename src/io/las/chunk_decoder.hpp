#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace citysplat::io {

/// Can this build decode LAZ?
bool laz_available();
/// What to do when it cannot.
std::string laz_advice();

/// What a chunk is made of.
struct LazChunkLayout {
    int point_format = 0;
    std::size_t record_bytes = 0;
    std::size_t points = 0;
};

/// Decodes the points of one chunk and hands them on in pieces of whole records. Safe to call from several
/// threads: each has a decoder of its own, confined to its own memory. Throws InputError starting with
/// `where` when the chunk is damaged; pieces handed on before that are not to be used.
void decode_laz_chunk(std::span<const std::byte> chunk, const LazChunkLayout& layout,
                      const std::string& where, const std::function<void(std::span<const std::byte>)>& take);

}  // namespace citysplat::io
