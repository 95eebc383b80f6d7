#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace citysplat::io {

/// CRC-32 of IEEE 802.3, as zlib and MCAP have it. `before` is that of what came before these bytes.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace citysplat::io
