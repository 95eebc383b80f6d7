#include "view/ortho.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::view {

namespace {

/// Rays of a band, at most.
constexpr std::int64_t kBandRays = 1 << 20;
/// Samples are cast in squares of so many, so that those next to each other in a packet meet the same discs.
constexpr std::int64_t kSquare = 8;

RenderOptions shading_of(const OrthoOptions& options) {
    RenderOptions shading;
    shading.shade = options.shade;
    return shading;
}

/// From the lowest to the highest disc of the city, whole metres around.
std::pair<double, double> heights(const TileSource& city) {
    double low = 0, high = 1;
    bool first = true;
    for (const TileEntry& entry : city.tiles()) {
        low = first ? entry.min.z : std::min(low, entry.min.z);
        high = first ? entry.max.z : std::max(high, entry.max.z);
        first = false;
    }
    return {std::floor(low) - 1, std::ceil(high) + 1};
}

/// Below which the lowest 10 % and the highest 90 % of the tiles end: a robust range for colours.
std::pair<double, double> colour_heights(const TileSource& city, const OrthoOptions& options) {
    if (options.heights_m) return *options.heights_m;
    std::vector<double> low, high;
    for (const TileEntry& entry : city.tiles()) low.push_back(entry.min.z), high.push_back(entry.max.z);
    if (low.empty()) return {0, 1};
    std::sort(low.begin(), low.end());
    std::sort(high.begin(), high.end());
    const auto last = static_cast<double>(low.size() - 1);
    return {low[static_cast<std::size_t>(0.1 * last)], high[static_cast<std::size_t>(0.9 * last)]};
}

}  // namespace

OrthoCamera::OrthoCamera(const TileSource& city, const trace::Tracer& tracer, const OrthoOptions& options)
    : options_(options),
      city_(city, tracer, trace::CacheOptions{options.budget_bytes}),
      top_m_(heights(city).second),
      depth_m_(top_m_ - heights(city).first),
      shader_(city.classes(), shading_of(options), colour_heights(city, options).first,
              colour_heights(city, options).second) {
    if (options.shade == Shade::range) throw UsageError("--shade range: seen from above there are no ranges");
    if (depth_m_ > static_cast<double>(trace::kMaxRange_m))
        throw UsageError("the city is " + std::to_string(depth_m_) +
                         " m high, more than a ray is long; choose a part of it with --bounds");
}

OrthoWindow OrthoCamera::window_of(const LatticeBox& box) const {
    // The first pixel whose middle is not below.
    const auto first = [&](std::int64_t steps) {
        return static_cast<std::int64_t>(std::ceil(to_metres(steps) / options_.resolution_m - 0.5));
    };
    const std::int64_t column = first(box.min_x), row = first(box.min_y);
    return {column, row, first(box.max_x) - column, first(box.max_y) - row};
}

RasterFrame OrthoCamera::frame_of(const OrthoWindow& w) const {
    return {static_cast<double>(w.first_column) * options_.resolution_m,
            static_cast<double>(w.first_row + w.rows) * options_.resolution_m, options_.resolution_m,
            static_cast<int>(w.columns), static_cast<int>(w.rows)};
}

OrthoPicture OrthoCamera::take(const OrthoWindow& window, const CancelToken& cancel) {
    OrthoPicture out{Picture(static_cast<int>(window.columns), static_cast<int>(window.rows)), {}, 0};
    out.opaque.resize(static_cast<std::size_t>(window.columns * window.rows));
    const std::int64_t samples = options_.samples;
    const std::int64_t wanted = kBandRays / std::max<std::int64_t>(1, window.columns * samples * samples);
    const std::int64_t rows = std::max<std::int64_t>(kSquare, wanted / kSquare * kSquare);
    for (std::int64_t first = 0; first < window.rows; first += rows)
        take_band(window, {first, std::min(rows, window.rows - first)}, out, cancel);
    return out;
}

void OrthoCamera::take_band(const OrthoWindow& window, const Band& band, OrthoPicture& out,
                            const CancelToken& cancel) {
    const std::int64_t samples = options_.samples, width = window.columns * samples,
                       height = band.rows * samples;
    std::vector<trace::Ray> rays;
    std::vector<std::uint32_t> pixels;  // of the rays, within the band
    rays.reserve(static_cast<std::size_t>(width * height));
    pixels.reserve(rays.capacity());
    const auto middle = [&](std::int64_t pixel, std::int64_t sample) {
        const double within = (static_cast<double>(sample) + 0.5) / static_cast<double>(samples);
        return (static_cast<double>(pixel) + within) * options_.resolution_m;
    };
    const auto add = [&](std::int64_t column, std::int64_t row) {
        const std::int64_t north = window.first_row + window.rows - 1 - (band.first + row / samples);
        rays.push_back({{middle(window.first_column + column / samples, column % samples),
                         middle(north, samples - 1 - row % samples), top_m_},
                        {0, 0, -1},
                        0.0f,
                        static_cast<float>(depth_m_)});
        pixels.push_back(static_cast<std::uint32_t>(row / samples * window.columns + column / samples));
    };
    for (std::int64_t y = 0; y < height; y += kSquare)
        for (std::int64_t x = 0; x < width; x += kSquare)
            for (std::int64_t row = y; row < std::min(y + kSquare, height); ++row)
                for (std::int64_t column = x; column < std::min(x + kSquare, width); ++column)
                    add(column, row);
    std::vector<trace::Hit> hits(rays.size());
    city_.closest(rays, hits, cancel);

    struct Sum {
        Colour colour;
        float hits = 0;
    };
    std::vector<Sum> sums(static_cast<std::size_t>(window.columns * band.rows));
    for (std::size_t i = 0; i < hits.size(); ++i) {
        if (!hits[i].exists()) continue;
        Vec3f normal = unpack_normal(hits[i].normal);
        if (normal.z < 0) normal = -normal;
        const Vec3d place{rays[i].origin.x, rays[i].origin.y, top_m_ - hits[i].range_m};
        Sum& sum = sums[pixels[i]];
        sum.colour = sum.colour + shader_.plan({place, normal, hits[i].range_m, hits[i].label,
                                                hits[i].intensity, hits[i].splat_id});
        sum.hits += 1;
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i].hits == 0) continue;
        const std::size_t at = static_cast<std::size_t>(band.first * window.columns) + i;
        const auto columns = static_cast<std::size_t>(window.columns);
        out.picture.at(static_cast<int>(at % columns), static_cast<int>(at / columns)) =
            to_rgb(sums[i].colour * (1 / sums[i].hits));
        out.opaque[at] = 255;
        ++out.seen;
    }
}

}  // namespace citysplat::view
