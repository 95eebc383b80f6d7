#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::splat {

/// Position on the 3-D Hilbert curve of order `bits` (at most 21): neighbours on the curve are neighbours in
/// space. Requires x, y, z < 2^bits.
std::uint64_t hilbert_key(std::uint32_t x, std::uint32_t y, std::uint32_t z, int bits);

struct CurveEntry {
    std::uint64_t key;
    std::uint32_t index;
};

/// Sorts numbers by the bits from `low_bit` up to `high_bit`, which is not included; numbers that agree in
/// them keep their order.
void sort_by_bits(std::vector<std::uint64_t>& numbers, int low_bit, int high_bit);

/// Sorts by key; equal keys keep their order. Runs of `key_bits` low bits count.
void sort_by_key(std::vector<CurveEntry>& entries, int key_bits);

}  // namespace citysplat::splat
