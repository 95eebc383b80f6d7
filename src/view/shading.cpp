#include "view/shading.hpp"

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "core/words.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::view {

Colour operator+(Colour a, Colour b) { return {a.r + b.r, a.g + b.g, a.b + b.b}; }
Colour operator*(Colour a, float s) { return {a.r * s, a.g * s, a.b * s}; }

Rgb to_rgb(Colour c) {
    const auto channel = [](float v) {
        return static_cast<std::uint8_t>(std::clamp(std::sqrt(std::max(v, 0.0f)), 0.0f, 1.0f) * 255.0f +
                                         0.5f);
    };
    return {channel(c.r), channel(c.g), channel(c.b)};
}

Shade shade_from(const std::string& name) {
    constexpr Words<Shade, 6> kShades{{"class", "normal", "height", "intensity", "range", "splat"}};
    if (const auto shade = kShades.value(name)) return *shade;
    throw UsageError("shading \"" + name + "\" is not one of class, normal, height, intensity, range, splat");
}

namespace {

/// Display values are square roots of linear ones.
Colour from_rgb(Rgb c) {
    const auto linear = [](std::uint8_t v) {
        return static_cast<float>(v) * static_cast<float>(v) / 65025.0f;
    };
    return {linear(c.r), linear(c.g), linear(c.b)};
}

Colour mix(Colour a, Colour b, float s) { return a * (1 - s) + b * s; }

/// Dark blue over green to yellow: monotone in lightness, so that it reads in grey too.
Colour ramp(double t) {
    constexpr std::array<std::uint32_t, 6> kStops{0x352a6b, 0x2f5c8f, 0x25848e, 0x3dab79, 0x9bcb4a, 0xfbe33a};
    const double at = std::clamp(t, 0.0, 1.0) * (kStops.size() - 1);
    const auto i = std::min(static_cast<std::size_t>(at), kStops.size() - 2);
    return mix(from_rgb(rgb_from(kStops[i])), from_rgb(rgb_from(kStops[i + 1])),
               static_cast<float>(at - static_cast<double>(i)));
}

}  // namespace

Shader::Shader(const ClassMap& classes, const RenderOptions& options, double low_m, double high_m)
    : classes_(classes), options_(options), low_m_(low_m), high_m_(high_m) {
    for (std::uint16_t label = 0; label < by_label_.size(); ++label)
        by_label_[label] = from_rgb(rgb_from(classes.at(label).rgb));
}

Colour Shader::base(const Surface& s) const {
    switch (options_.shade) {
        case Shade::classes:
            return s.label < by_label_.size() ? by_label_[s.label]
                                              : from_rgb(rgb_from(classes_.at(s.label).rgb));
        case Shade::normal: {
            const auto channel = [](float v) { return 0.5f + 0.5f * v; };
            const Colour c{channel(s.normal.x), channel(s.normal.y), channel(s.normal.z)};
            return {c.r * c.r, c.g * c.g, c.b * c.b};
        }
        case Shade::height:
            return ramp((s.position.z - low_m_) / std::max(high_m_ - low_m_, 1e-3));
        case Shade::intensity: {
            const float v = static_cast<float>(s.intensity) / 65535.0f;
            return {v, v, v};
        }
        case Shade::range:
            return ramp(1 - std::log2(1 + s.range_m) / std::log2(1 + options_.far_m));
        case Shade::splat: {
            const std::uint64_t bits = rng::mix(s.id);
            const auto channel = [bits](int shift) {
                return 0.1f + 0.8f * static_cast<float>(bits >> shift & 255) / 255.0f;
            };
            return {channel(0), channel(8), channel(16)};
        }
    }
    return {};
}

Colour Shader::shade(const Surface& s, Vec3f direction) const {
    Colour colour = base(s);
    if (dot(s.normal, s.normal) > 0 && options_.shade != Shade::normal) {
        const float up = 0.5f + 0.5f * s.normal.z;
        const float facing = std::fabs(dot(s.normal, direction));
        // A low sun from the side tells walls apart that the sky lights alike.
        const float sun = std::max(0.0f, dot(s.normal, Vec3f{0.48f, -0.36f, 0.8f}));
        colour = colour * (0.30f + 0.25f * up + 0.25f * facing + 0.35f * sun);
    }
    const auto haze = static_cast<float>(1 - std::exp(-s.range_m / (options_.far_m * 0.6)));
    return mix(colour, sky(direction), haze);
}

Colour Shader::plan(const Surface& s) const {
    if (options_.shade != Shade::classes && options_.shade != Shade::height) return base(s);
    return base(s) * (0.6f + 0.4f * std::max(0.0f, dot(s.normal, Vec3f{-0.48f, 0.36f, 0.8f})));
}

Colour Shader::sky(Vec3f direction) const {
    const float up = std::clamp(direction.z * 2.0f + 0.25f, 0.0f, 1.0f);
    return mix(from_rgb(rgb_from(0xdfe6ec)), from_rgb(rgb_from(0x8fb0d0)), up);
}

void darken_edges(std::span<Colour> pixels, std::span<const float> depth_m, int width, int height) {
    constexpr float kFar = 1e6f, kStrength = 6.0f;
    std::vector<float> depth(depth_m.size());
    for (std::size_t i = 0; i < depth.size(); ++i) depth[i] = std::log2(depth_m[i] > 0 ? depth_m[i] : kFar);
    const auto index = [width](int x, int y) {
        return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
    };
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const float here = depth[index(x, y)];
            float behind = 0;
            for (const auto& [dx, dy] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) {
                const int nx = x + dx, ny = y + dy;
                if (nx < 0 || ny < 0 || nx >= width || ny >= height) continue;
                behind += std::clamp(here - depth[index(nx, ny)] - 0.01f, 0.0f, 0.5f);
            }
            const bool empty = depth_m[index(x, y)] <= 0;
            if (!empty) pixels[index(x, y)] = pixels[index(x, y)] * std::exp2(-kStrength * behind / 4);
        }
}

}  // namespace citysplat::view
