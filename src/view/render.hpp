#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "io/write/picture.hpp"
#include "model/class_map.hpp"
#include "model/tile_source.hpp"
#include "trace/tracer.hpp"
#include "view/camera.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// Pictures of a city, through the same tracer as the simulation: what is wrong with the model shows here.
namespace citysplat::view {

enum class Shade { classes, normal, height, intensity, range, splat };
/// "class", "normal", "height", "intensity", "range", "splat". Throws UsageError.
Shade shade_from(const std::string& name);

struct RenderOptions {
    Shade shade = Shade::classes;
    int samples = 2;    ///< per pixel and axis; 1: no anti-aliasing
    bool edges = true;  ///< darken where the depth jumps, so that shapes stand out
    double far_m = 1500;
    std::uint64_t budget_bytes = std::uint64_t{2} << 30;  ///< tiles resident at a time
};

struct View {
    Camera camera;
    RenderOptions options;
    /// What else there is, where it is at time 0. Of the tracer that renders.
    std::span<const trace::Part> parts{};
};

/// A picture, and what was done for it.
struct Rendering {
    Picture picture;
    std::uint64_t rays = 0, hits = 0;
    std::uint64_t tiles = 0, passes = 0;
};

Rendering render(const TileSource& city, const trace::Tracer& tracer, const View& view,
                 const CancelToken& cancel, Progress& progress);

/// The points of cloud files as the camera sees them, nearest in front, each `point_px` wide.
Rendering render_points(std::span<const std::filesystem::path> files, const ClassMap& classes,
                        const View& view, int point_px, const CancelToken& cancel);

}  // namespace citysplat::view
