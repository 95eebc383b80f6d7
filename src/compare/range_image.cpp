#include "compare/range_image.hpp"

#include "compare/error_statistics.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

namespace citysplat::compare {

namespace {

constexpr int kPixelsPerBeam = 4;
constexpr int kBetweenImages = 6;

constexpr Rgb kHole{255, 0, 255}, kExtra{255, 230, 0}, kAgrees{70, 70, 70}, kSeparator{255, 255, 255};

std::uint8_t byte_of(double v) { return static_cast<std::uint8_t>(std::clamp(v, 0.0, 255.0) + 0.5); }

Rgb between(Rgb a, Rgb b, double share) {
    const auto mix = [share](std::uint8_t from, std::uint8_t to) {
        return byte_of(from + share * (to - from));
    };
    return {mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b)};
}

/// 80 m and more are the last colour; the scale follows the square root, which gives near things more room.
Rgb colour_of_range(double range_m) {
    constexpr std::array<Rgb, 5> kColours{
        {{255, 255, 255}, {255, 200, 60}, {215, 60, 50}, {110, 40, 140}, {20, 30, 110}}};
    const double place = std::sqrt(std::clamp(range_m / 80, 0.0, 1.0)) * (kColours.size() - 1);
    const auto k = std::min(static_cast<std::size_t>(place), kColours.size() - 2);
    return between(kColours[k], kColours[k + 1], place - static_cast<double>(k));
}

Rgb colour_of_error(double error_m) {
    constexpr double kFull_m = 1;
    const double size_m = std::fabs(error_m);
    if (size_m <= ErrorStatistics::kLimits_m[0]) return kAgrees;
    const double share = 0.35 + 0.65 * std::min(1.0, size_m / kFull_m);
    return between({40, 40, 40}, error_m < 0 ? Rgb{60, 140, 255} : Rgb{255, 60, 40}, share);
}

}  // namespace

Picture range_images(const RecordedScan& scan, std::span<const sim::Return> simulated) {
    assert(scan.beams > 0 && simulated.size() == scan.rays.size());
    const int image_height = static_cast<int>(scan.beams) * kPixelsPerBeam;
    Picture picture(static_cast<int>(scan.columns), 3 * image_height + 2 * kBetweenImages);
    for (const int top : {image_height, 2 * image_height + kBetweenImages})
        for (int y = top; y < top + kBetweenImages; ++y)
            for (int x = 0; x < picture.width(); ++x) picture.at(x, y) = kSeparator;
    const auto paint = [&](int image, const RecordedRay& ray, Rgb colour) {
        const int top = image * (image_height + kBetweenImages) + ray.beam * kPixelsPerBeam;
        for (int y = top; y < top + kPixelsPerBeam; ++y) picture.at(static_cast<int>(ray.column), y) = colour;
    };
    for (std::size_t i = 0; i < scan.rays.size(); ++i) {
        const RecordedRay& ray = scan.rays[i];
        const sim::Return& met = simulated[i];
        if (ray.beam >= scan.beams) continue;
        const bool returned = met.status == sim::RayStatus::hit;
        const auto met_m = static_cast<double>(met.range_m);
        if (!ray.is_empty()) paint(0, ray, colour_of_range(ray.range_m));
        if (returned) paint(1, ray, colour_of_range(met_m));
        if (returned && ray.met_city())
            paint(2, ray, colour_of_error(met_m - ray.range_m));
        else if (returned || ray.met_city())
            paint(2, ray, returned ? kExtra : kHole);
    }
    return picture;
}

}  // namespace citysplat::compare
