#include "mesh/box_sums.hpp"

#include <algorithm>

namespace citysplat::mesh {

BoxSums::BoxSums(int most_level)
    : most_level_(most_level), side_(static_cast<std::size_t>(kBlockCorners + 2 * most_level)) {
    const std::size_t places = side_ * side_ * side_;
    counts_.resize(places);
    sums_.resize(places);
    voxel_at_.resize(places);
}

std::size_t BoxSums::bytes() const {
    return counts_.size() * (sizeof(std::int64_t) + sizeof(VoxelSums) + sizeof(std::int32_t));
}

bool BoxSums::load(const VoxelPoints& points, const Voxel& block) {
    block_ = block;
    const VoxelGrid& grid = points.grid();
    voxel_steps_ = grid.steps();
    std::fill(counts_.begin(), counts_.end(), 0);
    std::fill(sums_.begin(), sums_.end(), VoxelSums{});
    std::fill(voxel_at_.begin(), voxel_at_.end(), -1);
    const std::int64_t ox = grid.corner(0, block.x), oy = grid.corner(1, block.y),
                       oz = grid.corner(2, block.z);
    const int k = most_level_;
    bool any = false;
    const Voxel low{block.x - k, block.y - k, block.z - k};
    const Voxel high{block.x + kBlockCells + k, block.y + kBlockCells + k, block.z + kBlockCells + k};
    points.visit(low, high, [&](std::size_t i) {
        any = true;
        const Voxel& v = points.voxel(i);
        const std::size_t place = at(v.x - block.x + 1, v.y - block.y + 1, v.z - block.z + 1);
        VoxelSums& sums = sums_[place];
        for (const TilePoint& p : points.points(i)) sums.add(p.x - ox, p.y - oy, p.z - oz, sight_line(p));
        counts_[place] = sums.of[VoxelSums::n];
        voxel_at_[place] = static_cast<std::int32_t>(i);
    });
    if (!any) return false;
    sum_up(counts_);
    sum_up(sums_);
    return true;
}

template <class T>
void BoxSums::sum_up(std::vector<T>& field) const {
    const std::size_t row = side_, slice = side_ * side_;
    for (std::size_t z = 1; z < side_; ++z)
        for (std::size_t y = 1; y < side_; ++y) {
            T along{};
            T* at = field.data() + z * slice + y * row;
            for (std::size_t x = 1; x < side_; ++x) {
                along += at[x];
                T sum = along;
                sum += *(at + x - row);
                sum += *(at + x - slice);
                sum -= *(at + x - slice - row);
                at[x] = sum;
            }
        }
}

template <class T>
T BoxSums::box_sum(const std::vector<T>& field, const Voxel& corner, int level) const {
    const Voxel a = low(corner, level), b = high(corner, level);
    T sum = field[at(b.x, b.y, b.z)];
    sum -= field[at(a.x, b.y, b.z)];
    sum -= field[at(b.x, a.y, b.z)];
    sum -= field[at(b.x, b.y, a.z)];
    sum += field[at(a.x, a.y, b.z)];
    sum += field[at(a.x, b.y, a.z)];
    sum += field[at(b.x, a.y, a.z)];
    sum -= field[at(a.x, a.y, a.z)];
    return sum;
}

std::int64_t BoxSums::count(const Voxel& corner, int level) const { return box_sum(counts_, corner, level); }

VoxelSums BoxSums::sums(const Voxel& corner, int level) const {
    return box_sum(sums_, corner, level)
        .moved(corner.x * voxel_steps_, corner.y * voxel_steps_, corner.z * voxel_steps_);
}

}  // namespace citysplat::mesh
