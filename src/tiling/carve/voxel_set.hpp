#pragma once

#include "core/math/rng_hd.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace citysplat::tiling {

/// A voxel of a region as one number: x, y and z, each with a sign. Steps along an axis are additions.
class PackedVoxel {
  public:
    /// Requires that x and y are below 2²⁰ and z below 2²¹, either side of 0: 200 km.
    PackedVoxel(std::int64_t x, std::int64_t y, std::int64_t z)
        : bits_(biased(x, kBiasXY) | biased(y, kBiasXY) << kShiftY | biased(z, kBiasZ) << kShiftZ) {}
    explicit PackedVoxel(std::uint64_t bits) : bits_(bits) {}

    /// What is added to bits() to go one voxel along an axis (0, 1, 2).
    static std::uint64_t step(std::size_t axis) { return std::uint64_t{1} << (axis * kShiftY); }
    std::uint64_t bits() const { return bits_; }
    /// The same for all voxels of a block of 8 × 8 × 8.
    std::uint64_t block() const { return bits_ & kBlockBits; }
    /// Its place in the block: a layer (z), and where in it.
    std::size_t layer() const { return bits_ >> kShiftZ & 7; }
    int place() const { return static_cast<int>((bits_ >> kShiftY & 7) << 3 | (bits_ & 7)); }
    static PackedVoxel in_block(std::uint64_t block, std::size_t layer, int place) {
        const auto at = static_cast<std::uint64_t>(place);
        return PackedVoxel(block | layer << kShiftZ | (at >> 3) << kShiftY | (at & 7));
    }
    PackedVoxel moved(int dx, int dy, int dz) const {
        const auto by = [](int d, std::size_t axis) { return static_cast<std::uint64_t>(d) * step(axis); };
        return PackedVoxel(bits_ + by(dx, 0) + by(dy, 1) + by(dz, 2));
    }

  private:
    static constexpr int kShiftY = 21, kShiftZ = 42;
    static constexpr std::int64_t kBiasXY = 1 << 20, kBiasZ = 1 << 21;
    static constexpr std::uint64_t kBlockBits =
        ~(std::uint64_t{7} | std::uint64_t{7} << kShiftY | std::uint64_t{7} << kShiftZ);
    static std::uint64_t biased(std::int64_t v, std::int64_t bias) {
        return static_cast<std::uint64_t>(v + bias);
    }
    std::uint64_t bits_;
};

/// A set of voxels, sparse: blocks of 8 × 8 × 8 bits in a hash table. Once sealed its voxels are numbered,
/// block by block; the numbers say nothing beyond this set.
class VoxelSet {
  public:
    struct Block {
        std::uint64_t key;
        std::uint32_t first;                    ///< number of its first voxel
        std::array<std::uint16_t, 8> in_front;  ///< voxels in the layers before each
        std::array<std::uint64_t, 8> bits;      ///< by layer

        bool contains(PackedVoxel v) const { return bits[v.layer()] >> v.place() & 1; }
        /// Requires contains().
        std::uint32_t number(PackedVoxel v) const {
            const std::uint64_t below = bits[v.layer()] & ((std::uint64_t{1} << v.place()) - 1);
            return first + in_front[v.layer()] + static_cast<std::uint32_t>(std::popcount(below));
        }
    };

    VoxelSet();
    /// Returns the place of its block in blocks().
    std::uint32_t insert(PackedVoxel v);
    void seal();

    std::size_t size() const { return size_; }
    const std::vector<Block>& blocks() const { return blocks_; }
    /// The block of a voxel, nullptr when it has none.
    const Block* block_of(PackedVoxel v) const {
        const std::uint32_t found = table_[slot_of(v.block())];
        return found == 0 ? nullptr : &blocks_[found - 1];
    }
    std::optional<std::uint32_t> find(PackedVoxel v) const {
        const Block* block = block_of(v);
        if (!block || !block->contains(v)) return std::nullopt;
        return block->number(v);
    }
    /// Calls visit(voxel, number) for every voxel, in the order of their numbers.
    template <class Visit>
    void for_each(const Visit& visit) const {
        for (const Block& block : blocks_) {
            std::uint32_t number = block.first;
            for (std::size_t z = 0; z < 8; ++z)
                for (std::uint64_t left = block.bits[z]; left; left &= left - 1)
                    visit(PackedVoxel::in_block(block.key, z, std::countr_zero(left)), number++);
        }
    }

  private:
    std::size_t slot_of(std::uint64_t key) const {
        const std::size_t mask = table_.size() - 1;
        std::size_t slot = rng::mix(key) & mask;
        while (table_[slot] != 0 && blocks_[table_[slot] - 1].key != key) slot = (slot + 1) & mask;
        return slot;
    }
    void grow();

    std::vector<Block> blocks_;
    std::vector<std::uint32_t> table_;  ///< place in blocks_ plus one; 0: none. A power of two.
    std::size_t size_ = 0;
};

}  // namespace citysplat::tiling
