#pragma once

#include "core/math/vec_hd.hpp"
#include "io/write/picture.hpp"
#include "model/class_map.hpp"
#include "view/camera.hpp"
#include "view/render.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::view {

/// Linear colour, 0 … 1.
struct Colour {
    float r = 0, g = 0, b = 0;
};
Colour operator+(Colour a, Colour b);
Colour operator*(Colour a, float s);
Rgb to_rgb(Colour c);

/// What a picture knows of the thing at a pixel.
struct Surface {
    Vec3d position;
    Vec3f normal;  ///< zero when unknown
    double range_m;
    std::uint16_t label, intensity;
    std::uint64_t id;
};

/// Turns surfaces into colours: base colour by mode, lit by the sky and from the camera, faded into haze.
class Shader {
  public:
    /// Heights are coloured from `low_m` to `high_m`.
    Shader(const ClassMap& classes, const RenderOptions& options, double low_m, double high_m);
    Colour shade(const Surface& surface, Vec3f direction) const;
    /// As on a map: no haze and no light, but a little relief where that does not change what a colour means.
    Colour plan(const Surface& surface) const;
    Colour sky(Vec3f direction) const;

  private:
    Colour base(const Surface& surface) const;

    const ClassMap& classes_;
    RenderOptions options_;
    double low_m_, high_m_;
    std::array<Colour, 256> by_label_;
};

/// Darkens pixels that lie behind their neighbours (eye-dome lighting). `depth_m` is 0 where nothing is.
void darken_edges(std::span<Colour> pixels, std::span<const float> depth_m, int width, int height);

}  // namespace citysplat::view
