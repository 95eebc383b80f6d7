#include "io/bag/crc32.hpp"

#include "io/bytes_le.hpp"

#include <array>

namespace citysplat::io {

namespace {

constexpr std::size_t kSlices = 16;
using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

/// kTables[k][b] is what byte b becomes when k zero bytes follow it.
constexpr Tables kTables = [] {
    Tables tables{};
    for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t c = b;
        for (int bit = 0; bit < 8; ++bit) c = c & 1 ? (c >> 1) ^ 0xedb88320u : c >> 1;
        tables[0][b] = c;
    }
    for (std::size_t k = 1; k < kSlices; ++k)
        for (std::size_t b = 0; b < 256; ++b)
            tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 255];
    return tables;
}();

std::uint32_t word_of(std::uint32_t word, std::size_t slice) {
    return kTables[slice][word & 255] ^ kTables[slice - 1][word >> 8 & 255] ^
           kTables[slice - 2][word >> 16 & 255] ^ kTables[slice - 3][word >> 24];
}

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
    std::uint32_t crc = ~before;
    // Sixteen bytes at a time: their contributions do not wait for each other.
    while (bytes.size() >= kSlices) {
        const std::byte* at = bytes.data();
        crc = word_of(crc ^ load_le<std::uint32_t>(at), 15) ^ word_of(load_le<std::uint32_t>(at + 4), 11) ^
              word_of(load_le<std::uint32_t>(at + 8), 7) ^ word_of(load_le<std::uint32_t>(at + 12), 3);
        bytes = bytes.subspan(kSlices);
    }
    for (const std::byte b : bytes)
        crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(b)) & 255];
    return ~crc;
}

}  // namespace citysplat::io
