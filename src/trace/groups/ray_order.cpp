#include "trace/groups/ray_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace citysplat::trace {

namespace {

constexpr std::size_t kRun = 16;

/// Extent of the directions of consecutive rays along the axis where it is largest.
float spread(std::span<const Ray> rays) {
    Vec3f low = rays[0].direction, high = low;
    for (const Ray& ray : rays) {
        const Vec3f d = ray.direction;
        low = {std::min(low.x, d.x), std::min(low.y, d.y), std::min(low.z, d.z)};
        high = {std::max(high.x, d.x), std::max(high.y, d.y), std::max(high.z, d.z)};
    }
    const Vec3f extent = high - low;
    return std::max({extent.x, extent.y, extent.z});
}

}  // namespace

bool is_ordered(std::span<const Ray> rays) {
    constexpr float kWidest = 0.2f;
    float sum = 0;
    std::size_t runs = 0;
    for (std::size_t first = 0; first + kRun <= rays.size(); first += 8 * kRun, ++runs)
        sum += spread(rays.subspan(first, kRun));
    return runs == 0 || sum <= kWidest * static_cast<float>(runs);
}

namespace {

constexpr unsigned kBits = 10;  ///< of each coordinate

/// Place of a direction on a Hilbert curve over the octahedral map, 2 · kBits bits.
std::uint32_t place_on_curve(Vec3f d) {
    const float scale = 1 / (std::fabs(d.x) + std::fabs(d.y) + std::fabs(d.z));
    float u = d.x * scale, v = d.y * scale;
    if (d.z < 0) {
        const float w = (1 - std::fabs(v)) * (u < 0 ? -1.0f : 1.0f);
        v = (1 - std::fabs(u)) * (v < 0 ? -1.0f : 1.0f);
        u = w;
    }
    const auto cell = [](float a) {
        constexpr float kCells = 1u << kBits;
        // Also for what is not a number: it has a place like any other.
        return static_cast<std::uint32_t>(a > -1 ? std::min((a + 1) * (kCells / 2), kCells - 1) : 0);
    };
    // The curve in each of four orientations: which quarter comes when, and how it is oriented inside.
    static constexpr std::uint8_t kPlace[4][4] = {{0, 1, 3, 2}, {0, 3, 1, 2}, {2, 3, 1, 0}, {2, 1, 3, 0}};
    static constexpr std::uint8_t kNext[4][4] = {{1, 0, 3, 0}, {0, 2, 1, 1}, {2, 1, 2, 3}, {3, 3, 0, 2}};
    const std::uint32_t x = cell(u), y = cell(v);
    std::uint32_t place = 0, orientation = 0;
    for (unsigned bit = kBits; bit-- > 0;) {
        const std::uint32_t quarter = (x >> bit & 1) << 1 | (y >> bit & 1);
        place = place << 2 | kPlace[orientation][quarter];
        orientation = kNext[orientation][quarter];
    }
    return place;
}

/// One pass of a radix sort, by kBits bits from `shift` on; keeps the order of equals.
void sort_pass(std::span<const std::uint32_t> keys, std::span<const std::uint32_t> numbers, unsigned shift,
               std::span<std::uint32_t> sorted_keys, std::span<std::uint32_t> sorted_numbers) {
    constexpr std::uint32_t kBuckets = 1u << kBits;
    std::array<std::uint32_t, kBuckets> next{};
    for (const std::uint32_t key : keys) ++next[key >> shift & (kBuckets - 1)];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), 0u);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::uint32_t to = next[keys[i] >> shift & (kBuckets - 1)]++;
        sorted_keys[to] = keys[i];
        sorted_numbers[to] = numbers[i];
    }
}

}  // namespace

const std::uint32_t* RayOrder::arrange(std::span<const Ray> rays) {
    if (is_ordered(rays)) return nullptr;
    sort_by_direction(rays);
    return order_.data();
}

void RayOrder::sort_by_direction(std::span<const Ray> rays) {
    for (auto* column : {&keys_, &order_, &sorted_keys_, &sorted_}) column->resize(rays.size());
    for (std::size_t i = 0; i < rays.size(); ++i) keys_[i] = place_on_curve(rays[i].direction);
    std::iota(order_.begin(), order_.end(), 0u);
    sort_pass(keys_, order_, 0, sorted_keys_, sorted_);
    sort_pass(sorted_keys_, sorted_, kBits, keys_, order_);
}

}  // namespace citysplat::trace
