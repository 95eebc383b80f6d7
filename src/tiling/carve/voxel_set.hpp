#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace citysplat::tiling {

/// A set of voxels, sparse: blocks of 8 × 8 × 8 bits in a hash table. Once sealed its voxels are numbered,
/// block by block; the numbers say nothing beyond this set.
class VoxelSet {
  public:
    struct Index {
        std::int32_t x, y, z;
    };
    struct Block {
        std::uint64_t key;
        std::uint32_t first;  ///< number of its first voxel
        std::array<std::uint64_t, 8> bits;

        bool contains(const Index& v) const { return bits[word(v)] >> bit(v) & 1; }
        /// Requires contains().
        std::uint32_t number(const Index& v) const {
            std::uint32_t n = first;
            for (std::size_t w = 0; w < word(v); ++w) n += static_cast<std::uint32_t>(std::popcount(bits[w]));
            const std::uint64_t below = bits[word(v)] & ((std::uint64_t{1} << bit(v)) - 1);
            return n + static_cast<std::uint32_t>(std::popcount(below));
        }

      private:
        friend class VoxelSet;
        static std::size_t word(const Index& v) { return static_cast<std::size_t>(v.z & 7); }
        static int bit(const Index& v) { return (v.y & 7) * 8 + (v.x & 7); }
    };

    VoxelSet();
    void insert(const Index& v);
    void seal();

    std::size_t size() const { return size_; }
    /// The block of a voxel, nullptr when it has none. `block_key` tells when two voxels share one.
    const Block* block_of(const Index& v) const;
    std::optional<std::uint32_t> find(const Index& v) const {
        const Block* block = block_of(v);
        if (!block || !block->contains(v)) return std::nullopt;
        return block->number(v);
    }
    static std::uint64_t block_key(const Index& v) {
        constexpr std::uint64_t kMask = (1u << 21) - 1;
        const auto part = [](std::int32_t i) { return static_cast<std::uint64_t>(i >> 3) & kMask; };
        return part(v.x) | part(v.y) << 21 | part(v.z) << 42;
    }
    /// Calls visit(index, number) for every voxel, in the order of their numbers.
    template <class Visit>
    void for_each(const Visit& visit) const {
        for (const Block& block : blocks_) {
            std::uint32_t number = block.first;
            for (int z = 0; z < 8; ++z)
                for (std::uint64_t left = block.bits[static_cast<std::size_t>(z)]; left; left &= left - 1) {
                    const int at = std::countr_zero(left);
                    visit(Index{origin(block.key, 0) + at % 8, origin(block.key, 21) + at / 8,
                                origin(block.key, 42) + z},
                          number++);
                }
        }
    }

  private:
    /// First voxel of a block along one axis: 21 bits with a sign.
    static std::int32_t origin(std::uint64_t key, int shift) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(key >> shift) << 11) >> 8;
    }
    std::size_t slot_of(std::uint64_t key) const;
    void grow();

    std::vector<Block> blocks_;
    std::vector<std::uint32_t> table_;  ///< place in blocks_ plus one; 0: none. A power of two.
    std::size_t size_ = 0;
};

}  // namespace citysplat::tiling
