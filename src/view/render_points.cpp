#include "io/input/open_point_file.hpp"
#include "view/render.hpp"
#include "view/shading.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::view {

namespace {

/// Robust lowest and highest z from the headers or a first look at the points.
std::pair<double, double> heights(std::span<const std::unique_ptr<PointFile>> files) {
    std::vector<double> z;
    PointBatch batch;
    for (const auto& file : files) {
        const std::size_t step = std::max<std::size_t>(1, file->block_count() / 8);
        for (std::size_t b = 0; b < file->block_count(); b += step) {
            file->read_block(b, batch);
            for (std::size_t i = 0; i < batch.size(); i += 64) z.push_back(batch.z[i]);
        }
    }
    if (z.empty()) return {0, 1};
    std::sort(z.begin(), z.end());
    const auto at = [&](double share) {
        return z[static_cast<std::size_t>(share * static_cast<double>(z.size() - 1))];
    };
    return {at(0.02), at(0.98)};
}

class PointCanvas {
  public:
    PointCanvas(const Camera& camera, int point_px)
        : camera_(camera),
          half_(point_px / 2),
          size_(point_px),
          pixels_(static_cast<std::size_t>(camera.width) * static_cast<std::size_t>(camera.height)),
          depth_(pixels_.size(), 0.0f) {}

    bool draw(Vec3d world, const Shader& shader, Surface surface) {
        const auto seen = camera_.project(world);
        if (!seen || seen->px < -size_ || seen->py < -size_ || seen->px > camera_.width + size_ ||
            seen->py > camera_.height + size_)
            return false;
        surface.range_m = length(world - camera_.world_from_camera.translation);
        const Colour colour = shader.shade(surface, {0, 0, 1});
        const auto depth = static_cast<float>(seen->depth_m);
        const int x0 = static_cast<int>(std::floor(seen->px)) - half_,
                  y0 = static_cast<int>(std::floor(seen->py)) - half_;
        for (int y = std::max(y0, 0); y < std::min(y0 + size_, camera_.height); ++y)
            for (int x = std::max(x0, 0); x < std::min(x0 + size_, camera_.width); ++x) {
                const std::size_t i = static_cast<std::size_t>(y) * static_cast<std::size_t>(camera_.width) +
                                      static_cast<std::size_t>(x);
                if (depth_[i] != 0 && depth_[i] <= depth) continue;
                depth_[i] = depth;
                pixels_[i] = colour;
            }
        return true;
    }

    Picture picture(const RenderOptions& options, Rgb background) {
        if (options.edges) darken_edges(pixels_, depth_, camera_.width, camera_.height);
        Picture out(camera_.width, camera_.height, background);
        for (int y = 0; y < camera_.height; ++y)
            for (int x = 0; x < camera_.width; ++x) {
                const std::size_t i = static_cast<std::size_t>(y) * static_cast<std::size_t>(camera_.width) +
                                      static_cast<std::size_t>(x);
                if (depth_[i] > 0) out.at(x, y) = to_rgb(pixels_[i]);
            }
        return out;
    }

  private:
    const Camera& camera_;
    int half_, size_;
    std::vector<Colour> pixels_;
    std::vector<float> depth_;
};

}  // namespace

Rendering render_points(std::span<const std::filesystem::path> paths, const ClassMap& classes,
                        const View& view, int point_px, const CancelToken& cancel) {
    std::vector<std::unique_ptr<PointFile>> files;
    for (const auto& path : paths) files.push_back(open_point_file(path));
    const auto [low, high] = heights(files);
    const Shader shader(classes, view.options, low, high);
    PointCanvas canvas(view.camera, point_px);
    std::uint64_t points = 0, drawn = 0;
    PointBatch batch;
    for (const auto& file : files)
        for (std::size_t b = 0; b < file->block_count(); ++b) {
            cancel.check();
            file->read_block(b, batch);
            for (std::size_t i = 0; i < batch.size(); ++i) {
                const Vec3d p{batch.x[i], batch.y[i], batch.z[i]};
                const Surface surface{p,
                                      {0, 0, 0},
                                      0,
                                      batch.label.empty() ? std::uint16_t{0} : batch.label[i],
                                      batch.intensity.empty() ? std::uint16_t{0} : batch.intensity[i],
                                      i};
                drawn += canvas.draw(p, shader, surface);
                ++points;
            }
        }
    return {canvas.picture(view.options, {18, 20, 24}), points, drawn, 0, 0};
}

}  // namespace citysplat::view
