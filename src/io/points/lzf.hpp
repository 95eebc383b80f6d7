#pragma once

#include <cstddef>
#include <span>

namespace citysplat::io {

/// Decompresses LZF (the scheme of PCD binary_compressed): a control byte below 32 copies that many plus one
/// literal bytes; otherwise its upper 3 bits are a length (7: one more byte adds to it) and its lower 5 bits
/// with the next byte a distance back. Returns false when the input is damaged or does not give exactly
/// `out.size()` bytes; never reads or writes outside the spans.
bool lzf_decompress(std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace citysplat::io
