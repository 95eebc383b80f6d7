#include "mesh/box_sums.hpp"

#include <algorithm>

namespace citysplat::mesh {

BoxSums::BoxSums(int most_level)
    : most_level_(most_level), side_(static_cast<std::size_t>(kBlockCorners + 2 * most_level)) {
    for (auto& below : below_) below.resize(side_);
}

std::size_t BoxSums::bytes() const {
    return side_ * side_ * side_ * (sizeof(std::int64_t) + sizeof(VoxelSums) + sizeof(std::int32_t));
}

bool BoxSums::load(const VoxelPoints& points, const Voxel& block) {
    block_ = block;
    voxel_steps_ = points.grid().steps();
    const int k = most_level_;
    loaded_.clear();
    points.visit({block.x - k, block.y - k, block.z - k},
                 {block.x + kBlockCells + k, block.y + kBlockCells + k, block.z + kBlockCells + k},
                 [&](std::size_t i) { loaded_.push_back(i); });
    if (loaded_.empty()) return false;
    find_slabs(points);
    add_points(points);
    sum_up(counts_.data());
    sum_up(sums_.data());
    return true;
}

void BoxSums::find_slabs(const VoxelPoints& points) {
    for (auto& below : below_) std::fill(below.begin(), below.end(), 0);
    const auto mark = [this](std::size_t axis, std::int32_t from_block) {
        below_[axis][static_cast<std::size_t>(from_block + most_level_ + 1)] = 1;
    };
    for (const std::size_t i : loaded_) {
        const Voxel& v = points.voxel(i);
        mark(0, v.x - block_.x), mark(1, v.y - block_.y), mark(2, v.z - block_.z);
    }
    std::size_t stride = 1;
    first_ = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        std::size_t slabs = 0;
        for (std::size_t& below : below_[axis]) below = (slabs += below) * stride;
        stride_[axis] = stride;
        places_[axis] = slabs + 1;
        first_ += stride;
        stride *= places_[axis];
    }
    counts_.assign(stride, 0);
    sums_.assign(stride, VoxelSums{});
    voxel_at_.assign(stride, -1);
}

void BoxSums::add_points(const VoxelPoints& points) {
    const VoxelGrid& grid = points.grid();
    const std::int64_t ox = grid.corner(0, block_.x), oy = grid.corner(1, block_.y),
                       oz = grid.corner(2, block_.z);
    for (const std::size_t i : loaded_) {
        const Voxel& v = points.voxel(i);
        const std::size_t place = at(v.x - block_.x + 1, v.y - block_.y + 1, v.z - block_.z + 1);
        VoxelSums sums;
        for (const VoxelPoint& p : points.points(i)) sums.add(p.x - ox, p.y - oy, p.z - oz, p.sight());
        sums_[place] = sums;
        counts_[place] = sums.of[VoxelSums::n];
        voxel_at_[place] = static_cast<std::int32_t>(i);
    }
}

template <class T>
void BoxSums::sum_up(T* field) const {
    const std::size_t row = stride_[1], slice = stride_[2];
    for (std::size_t z = 1; z < places_[2]; ++z)
        for (std::size_t y = 1; y < places_[1]; ++y) {
            T along{};
            T* at = field + z * slice + y * row;
            for (std::size_t x = 1; x < places_[0]; ++x) {
                along += at[x];
                at[x] = along + *(at + x - row) + *(at + x - slice) - *(at + x - slice - row);
            }
        }
}

VoxelSums BoxSums::sums(const Voxel& corner, int level) const {
    return box_sum(sums_.data(), corner, level)
        .moved(corner.x * voxel_steps_, corner.y * voxel_steps_, corner.z * voxel_steps_);
}

}  // namespace citysplat::mesh
