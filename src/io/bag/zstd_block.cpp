#include "io/bag/zstd_block.hpp"

#include "core/error.hpp"

#include <zstd.h>

#include <string>

namespace citysplat::io {

std::vector<std::byte> compress_zstd(std::span<const std::byte> bytes) {
    constexpr int kLevel = 1;
    std::vector<std::byte> out(ZSTD_compressBound(bytes.size()));
    const std::size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kLevel);
    if (ZSTD_isError(n)) throw ResourceError(std::string("zstd: ") + ZSTD_getErrorName(n));
    out.resize(n);
    return out;
}

bool decompress_zstd(std::span<const std::byte> bytes, std::span<std::byte> out) {
    const std::size_t n = ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
    return !ZSTD_isError(n) && n == out.size();
}

}  // namespace citysplat::io
