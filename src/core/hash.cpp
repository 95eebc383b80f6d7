#include "core/hash.hpp"

#include <xxhash.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <new>

namespace citysplat {

std::string Hash128::hex() const {
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                  static_cast<unsigned long long>(low));
    return text.data();
}

std::optional<Hash128> Hash128::from_hex(std::string_view text) {
    if (text.size() != 32) return std::nullopt;
    for (const char c : text)
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return std::nullopt;
    Hash128 h;
    std::from_chars(text.data(), text.data() + 16, h.high, 16);
    std::from_chars(text.data() + 16, text.data() + 32, h.low, 16);
    return h;
}

Hash128 hash_bytes(std::span<const std::byte> bytes) {
    const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
    return {h.high64, h.low64};
}

std::uint64_t checksum_bytes(std::span<const std::byte> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

struct Hasher::State {
    State() : xxh(XXH3_createState()) {
        if (!xxh) throw std::bad_alloc();
        XXH3_128bits_reset(xxh);
    }
    ~State() { XXH3_freeState(xxh); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    XXH3_state_t* xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::bytes(std::span<const std::byte> data) {
    XXH3_128bits_update(state_->xxh, data.data(), data.size());
    return *this;
}

Hasher& Hasher::text(std::string_view s) {
    number(static_cast<std::uint64_t>(s.size()));
    return bytes(std::as_bytes(std::span(s.data(), s.size())));
}

Hash128 Hasher::finish() const {
    const XXH128_hash_t h = XXH3_128bits_digest(state_->xxh);
    return {h.high64, h.low64};
}

}  // namespace citysplat
