#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace citysplat {

/// A 128-bit XXH3 value: names objects, keys tiles, detects damage. Not cryptographic: it guards against
/// accidents, not against an adversary with write access to the city.
struct Hash128 {
    std::uint64_t high = 0, low = 0;

    std::string hex() const;  ///< 32 lower-case digits
    static std::optional<Hash128> from_hex(std::string_view text);

    /// Addition modulo 2¹²⁸: the hash of a set, whatever the order of its members.
    Hash128& operator+=(const Hash128& other) {
        low += other.low;
        high += other.high + (low < other.low ? 1 : 0);
        return *this;
    }
    friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

Hash128 hash_bytes(std::span<const std::byte> bytes);
/// Checksum of a block.
std::uint64_t checksum_bytes(std::span<const std::byte> bytes);

/// Streaming XXH3-128 with typed helpers for keys: numbers are hashed as their little-endian bytes, strings
/// with their length in front, so that ("ab","c") and ("a","bc") differ.
class Hasher {
  public:
    Hasher();
    ~Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;

    Hasher& bytes(std::span<const std::byte> data);
    Hasher& text(std::string_view s);
    template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> Hasher& number(T value) {
        return bytes(std::as_bytes(std::span<const T, 1>(&value, 1)));
    }
    Hasher& hash(const Hash128& h) { return number(h.high).number(h.low); }
    Hash128 finish() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace citysplat
