#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace citysplat::io {

/// One frame of zstd, at a level that is about as fast as writing.
std::vector<std::byte> compress_zstd(std::span<const std::byte> bytes);

/// Fills all of `out`. False when these bytes are not a frame with exactly that content.
bool decompress_zstd(std::span<const std::byte> bytes, std::span<std::byte> out);

}  // namespace citysplat::io
