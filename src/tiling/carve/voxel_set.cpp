#include "tiling/carve/voxel_set.hpp"

#include "core/math/rng_hd.hpp"

namespace citysplat::tiling {

VoxelSet::VoxelSet() : table_(1024, 0) {}

std::size_t VoxelSet::slot_of(std::uint64_t key) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = rng::mix(key) & mask;
    while (table_[slot] != 0 && blocks_[table_[slot] - 1].key != key) slot = (slot + 1) & mask;
    return slot;
}

void VoxelSet::grow() {
    table_.assign(table_.size() * 2, 0);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
        table_[slot_of(blocks_[i].key)] = static_cast<std::uint32_t>(i + 1);
}

void VoxelSet::insert(const Index& v) {
    const std::uint64_t key = block_key(v);
    std::size_t slot = slot_of(key);
    if (table_[slot] == 0) {
        if (2 * (blocks_.size() + 1) > table_.size()) {
            grow();
            slot = slot_of(key);
        }
        blocks_.push_back({key, 0, {}});
        table_[slot] = static_cast<std::uint32_t>(blocks_.size());
    }
    blocks_[table_[slot] - 1].bits[Block::word(v)] |= std::uint64_t{1} << Block::bit(v);
}

void VoxelSet::seal() {
    std::uint32_t first = 0;
    for (Block& block : blocks_) {
        block.first = first;
        for (const std::uint64_t bits : block.bits) first += static_cast<std::uint32_t>(std::popcount(bits));
    }
    size_ = first;
}

const VoxelSet::Block* VoxelSet::block_of(const Index& v) const {
    const std::uint32_t found = table_[slot_of(block_key(v))];
    return found == 0 ? nullptr : &blocks_[found - 1];
}

}  // namespace citysplat::tiling
