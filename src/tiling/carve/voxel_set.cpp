#include "tiling/carve/voxel_set.hpp"

namespace citysplat::tiling {

VoxelSet::VoxelSet() : table_(1024, 0) {}

void VoxelSet::grow() {
    table_.assign(table_.size() * 2, 0);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
        table_[slot_of(blocks_[i].key)] = static_cast<std::uint32_t>(i + 1);
}

std::uint32_t VoxelSet::insert(PackedVoxel v) {
    const std::uint64_t key = v.block();
    std::size_t slot = slot_of(key);
    if (table_[slot] == 0) {
        if (2 * (blocks_.size() + 1) > table_.size()) {
            grow();
            slot = slot_of(key);
        }
        blocks_.push_back({key, 0, {}, {}});
        table_[slot] = static_cast<std::uint32_t>(blocks_.size());
    }
    blocks_[table_[slot] - 1].bits[v.layer()] |= std::uint64_t{1} << v.place();
    return table_[slot] - 1;
}

void VoxelSet::seal() {
    std::uint32_t first = 0;
    for (Block& block : blocks_) {
        block.first = first;
        for (std::size_t z = 0; z < block.bits.size(); ++z) {
            block.in_front[z] = static_cast<std::uint16_t>(first - block.first);
            first += static_cast<std::uint32_t>(std::popcount(block.bits[z]));
        }
    }
    size_ = first;
}

}  // namespace citysplat::tiling
