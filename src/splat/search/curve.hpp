#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::splat {

/// Position on the 3-D Hilbert curve of order `bits` (at most 21): neighbours on the curve are neighbours in
/// space. Requires x, y, z < 2^bits.
std::uint64_t hilbert_key(std::uint32_t x, std::uint32_t y, std::uint32_t z, int bits);

struct KeyedIndex {
    std::uint64_t key;
    std::uint32_t index;
};

/// Sorts numbers by the bits from `low_bit` up to `high_bit`, which is not included; numbers that agree in
/// them keep their order.
void sort_by_bits(std::vector<std::uint64_t>& numbers, int low_bit, int high_bit);

/// Sorts by key; equal keys keep their order. Runs of `key_bits` low bits count.
void sort_by_key(std::vector<KeyedIndex>& entries, int key_bits);

/// The same, with entries of equal keys in the order of `before`.
template <class Before>
void sort_by_key(std::vector<KeyedIndex>& entries, int key_bits, const Before& before) {
    sort_by_key(entries, key_bits);
    for (auto first = entries.begin(); first != entries.end();) {
        const auto end = std::find_if(first, entries.end(),
                                      [key = first->key](const KeyedIndex& e) { return e.key != key; });
        std::sort(first, end, before);
        first = end;
    }
}

}  // namespace citysplat::splat
