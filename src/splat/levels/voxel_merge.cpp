#include "splat/levels/voxel_merge.hpp"

#include <cmath>

namespace citysplat::splat {

namespace {

/// Centres are summed in 1024ths, radii in 512ths of a voxel: the largest sum of squares, 2²⁰ · 2²⁰ for each
/// of 2²² discs, fits 63 bits.
constexpr int kPlaceBits = 10, kRadiusBits = 9;
constexpr std::uint32_t kMostDiscs = 1u << 22;
constexpr std::int64_t kHeaviestRadius = (1 << 10) - 1;
constexpr double kNormalUnits = 32767;

/// The corners of a square that is filled with discs are covered from here on, on the variance of the
/// centres.
constexpr double kCover = 1.5;
constexpr double kMostArea = 1.05;    ///< of the radius with the area of all discs
constexpr double kMostOfVoxel = 0.9;  ///< unless the discs are larger themselves

std::array<std::int64_t, 3> integer_normal(std::uint32_t packed) {
    const Vec3f n = unpack_normal(packed);
    const auto whole = [](float v) {
        return static_cast<std::int64_t>(std::floor(static_cast<double>(v) * kNormalUnits + 0.5));
    };
    return {whole(n.x), whole(n.y), whole(n.z)};
}

}  // namespace

std::uint32_t facing_side(std::uint32_t normal) {
    const auto n = integer_normal(normal);
    std::size_t axis = 0;
    for (std::size_t i = 1; i < 3; ++i)
        if (std::abs(n[i]) >= std::abs(n[axis])) axis = i;
    return static_cast<std::uint32_t>(2 * axis + (n[axis] < 0 ? 1 : 0));
}

void VoxelMerge::Sum::add(std::uint8_t byte, std::int64_t by) {
    if (byte == kUnknownByte) return;
    value += by * byte;
    weight += by;
}

std::uint8_t VoxelMerge::Sum::mean() const {
    return weight > 0 ? static_cast<std::uint8_t>(value / weight) : kUnknownByte;
}

void VoxelMerge::add(const LevelDisc& disc) {
    if (count_ == kMostDiscs) return;
    if (count_++ == 0) {
        first_ = disc;
        const auto floor_to_voxel = [this](std::int64_t v) { return v >> voxel_shift_ << voxel_shift_; };
        origin_ = {floor_to_voxel(disc.centre.x), floor_to_voxel(disc.centre.y),
                   floor_to_voxel(disc.centre.z)};
    }
    const std::int64_t radius = disc.radius >> (voxel_shift_ - kRadiusBits);
    const std::int64_t limited = std::clamp<std::int64_t>(radius, 1, kHeaviestRadius);
    const std::int64_t weight = limited * limited;
    const int place_shift = voxel_shift_ - kPlaceBits;
    const std::array<std::int64_t, 3> at{(disc.centre.x - origin_.x) >> place_shift,
                                         (disc.centre.y - origin_.y) >> place_shift,
                                         (disc.centre.z - origin_.z) >> place_shift};
    const auto normal = integer_normal(disc.normal);
    for (std::size_t i = 0; i < 3; ++i) {
        at_[i] += weight * at[i];
        normal_[i] += weight * normal[i];
        product_[i] += weight * at[i] * at[i];
    }
    product_[3] += weight * at[0] * at[1];
    product_[4] += weight * at[0] * at[2];
    product_[5] += weight * at[1] * at[2];
    weight_ += weight;
    area_ += radius * radius;
    radius_ += weight * radius;
    intensity_ += weight * disc.intensity;
    points_ = std::min(points_ + disc.point_count, 255u);
    range_.add(disc.range, weight);
    incidence_.add(disc.incidence, weight);
    group_ = std::min(group_, disc.group);
    instance_ = std::min(instance_, disc.instance);
}

/// Of the centres, along one direction of the plane on average; in 1024ths of a voxel, squared.
double VoxelMerge::in_plane_variance(Vec3d normal) const {
    const auto w = static_cast<double>(weight_);
    std::array<double, 3> mean{};
    for (std::size_t i = 0; i < 3; ++i) mean[i] = static_cast<double>(at_[i]) / w;
    const auto covariance = [&](std::size_t product, std::size_t a, std::size_t b) {
        return static_cast<double>(product_[product]) / w - mean[a] * mean[b];
    };
    const double xx = covariance(0, 0, 0), yy = covariance(1, 1, 1), zz = covariance(2, 2, 2);
    const double across =
        normal.x * normal.x * xx + normal.y * normal.y * yy + normal.z * normal.z * zz +
        2 * (normal.x * normal.y * covariance(3, 0, 1) + normal.x * normal.z * covariance(4, 0, 2) +
             normal.y * normal.z * covariance(5, 1, 2));
    return std::max(0.0, (xx + yy + zz - across) / 2);
}

/// In 512ths of a voxel.
double VoxelMerge::radius_units(double variance) const {
    constexpr double kPlaceUnits = 0.25;  // 1024ths, squared, in 512ths, squared
    const double mean = static_cast<double>(radius_) / static_cast<double>(weight_);
    const double spread = 2 * std::sqrt(kCover * kPlaceUnits * variance + mean * mean / 4);
    const double by_area = kMostArea * std::sqrt(static_cast<double>(area_));
    const double most = std::min(by_area, kMostOfVoxel * static_cast<double>(1 << kRadiusBits));
    return std::max(std::min(spread, most), mean);
}

LevelDisc VoxelMerge::result() const {
    if (count_ == 1) return first_;
    const auto w = static_cast<double>(weight_);
    const Vec3d sum{static_cast<double>(normal_[0]), static_cast<double>(normal_[1]),
                    static_cast<double>(normal_[2])};
    // All of them face the same side, so that their sum is never short.
    const Vec3d normal = normalized(sum);
    const int place_shift = voxel_shift_ - kPlaceBits;
    const auto place = [&](std::int64_t origin, std::size_t axis) {
        const double mean = static_cast<double>(at_[axis]) / w + 0.5;
        const auto steps =
            static_cast<std::int64_t>(std::floor(mean * static_cast<double>(1 << place_shift)));
        return origin + std::min(steps, (std::int64_t{1} << voxel_shift_) - 1);
    };
    const double radius =
        radius_units(in_plane_variance(normal)) * static_cast<double>(1 << (voxel_shift_ - kRadiusBits));
    LevelDisc disc;
    disc.centre = {place(origin_.x, 0), place(origin_.y, 1), place(origin_.z, 2)};
    disc.normal = pack_normal(normal);
    disc.radius = static_cast<std::uint32_t>(std::max(1.0, std::floor(radius + 0.5)));
    disc.label = first_.label;
    disc.intensity = static_cast<std::uint16_t>(intensity_ / weight_);
    disc.point_count = static_cast<std::uint8_t>(points_);
    disc.group = group_;
    disc.range = range_.mean();
    disc.incidence = incidence_.mean();
    disc.instance = instance_;
    return disc;
}

}  // namespace citysplat::splat
