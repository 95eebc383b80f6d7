#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

/// Numbers in the bytes of a file, and arithmetic on sizes that a file claims.
namespace citysplat::io {

static_assert(std::endian::native == std::endian::little, "the readers assume a little-endian machine");

template <class T>
requires std::is_trivially_copyable_v<T>
inline T load_le(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
requires std::is_trivially_copyable_v<T>
inline T load_be(const std::byte* at) {
    std::byte reversed[sizeof(T)];
    for (std::size_t i = 0; i < sizeof(T); ++i) reversed[i] = at[sizeof(T) - 1 - i];
    return load_le<T>(reversed);
}

template <class T>
requires std::is_trivially_copyable_v<T>
inline void store_le(std::byte* at, const T& value) { std::memcpy(at, &value, sizeof value); }

/// a · b and a + b, or nothing when the result does not fit 64 bits.
inline std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}
inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
}

/// Does [offset, offset + length) lie within a file of `size` bytes?
inline bool fits(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
    return offset <= size && length <= size - offset;
}

}  // namespace citysplat::io
