#include "view/render.hpp"

#include "core/parallel.hpp"
#include "trace/resident_city.hpp"
#include "view/shading.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::view {

namespace {

/// Hits kept between passes, at most; larger pictures are made in bands.
constexpr std::size_t kMaxHitBytes = std::size_t{256} << 20;

/// Rays of a band of rows, samples in blocks of 8 × 2 so that packets are coherent.
class BandRays {
  public:
    BandRays(const Camera& camera, const RenderOptions& options, int first_row, int rows)
        : camera_(camera),
          samples_(options.samples),
          columns_(camera.width * options.samples),
          first_(first_row * options.samples),
          rows_(rows * options.samples),
          far_m_(static_cast<float>(options.far_m)) {}

    std::size_t blocks() const { return static_cast<std::size_t>((rows_ + 1) / 2); }
    /// Samples of two rows of samples, one strip across the picture.
    std::size_t strip_rays() const { return static_cast<std::size_t>(columns_) * 2; }

    struct Sample {
        int column, row;  ///< of samples, row from the top of the band; row may be outside it by one
    };
    Sample sample(std::size_t block, std::size_t i) const {
        const std::size_t group = i / 16, in_group = i % 16;
        return {static_cast<int>(group * 8 + in_group / 2), static_cast<int>(block * 2 + in_group % 2)};
    }
    /// columns_ rounded up to blocks of 8.
    std::size_t padded_rays() const { return static_cast<std::size_t>((columns_ + 7) / 8) * 16; }

    trace::Ray ray(Sample s) const {
        const double step = 1.0 / samples_;
        const Vec3d d = camera_.direction((s.column + 0.5) * step, (first_ + s.row + 0.5) * step);
        return {camera_.world_from_camera.translation, vec_cast<float>(d), 0.0f, far_m_};
    }
    bool inside(Sample s) const { return s.column < columns_ && s.row < rows_; }
    std::size_t pixel(Sample s) const {
        return static_cast<std::size_t>(s.row / samples_) * static_cast<std::size_t>(camera_.width) +
               static_cast<std::size_t>(s.column / samples_);
    }

  private:
    const Camera& camera_;
    int samples_, columns_, first_, rows_;
    float far_m_;
};

/// Rays around what the camera can see.
std::vector<trace::Ray> corner_rays(const Camera& camera, double far_m) {
    std::vector<trace::Ray> corners;
    for (const double px : {0.0, camera.width / 2.0, static_cast<double>(camera.width)})
        for (const double py : {0.0, camera.height / 2.0, static_cast<double>(camera.height)})
            corners.push_back({camera.world_from_camera.translation,
                               vec_cast<float>(camera.direction(px, py)), 0.0f, static_cast<float>(far_m)});
    return corners;
}

class Renderer {
  public:
    Renderer(const TileSource& city, const trace::Tracer& tracer, const View& view)
        : camera_(view.camera),
          options_(view.options),
          parts_(view.parts),
          city_(city, tracer, trace::CacheOptions{options_.budget_bytes}),
          tiles_(city_.reach(corner_rays(camera_, options_.far_m))),
          shader_(city.classes(), options_, height(0.02), height(0.9)),
          pixels_(static_cast<std::size_t>(camera_.width) * static_cast<std::size_t>(camera_.height)),
          depth_(pixels_.size()) {}

    Rendering run(const CancelToken& cancel, Progress& progress) {
        const std::size_t row_bytes = static_cast<std::size_t>(camera_.width) *
                                      static_cast<std::size_t>(options_.samples * options_.samples) *
                                      sizeof(trace::Hit);
        const int band = std::max<int>(2, static_cast<int>(kMaxHitBytes / row_bytes));
        Progress::Stage stage(progress, "render", static_cast<std::uint64_t>(camera_.height), "rows");
        for (int first = 0; first < camera_.height; first += band) {
            const int rows = std::min(band, camera_.height - first);
            render_band(first, rows, cancel);
            stage.advance(static_cast<std::uint64_t>(rows));
        }
        if (options_.edges) darken_edges(pixels_, depth_, camera_.width, camera_.height);
        Picture picture(camera_.width, camera_.height);
        for (int y = 0; y < camera_.height; ++y)
            for (int x = 0; x < camera_.width; ++x)
                picture.at(x, y) =
                    to_rgb(pixels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(camera_.width) +
                                   static_cast<std::size_t>(x)]);
        return {std::move(picture),
                pixels_.size() * static_cast<std::size_t>(options_.samples * options_.samples), hits_,
                tiles_.size(), city_.passes()};
    }

  private:
    /// Height below which about `share` of the visible tiles reach: a robust range for colours.
    double height(double share) const {
        std::vector<double> low, high;
        for (const std::uint32_t tile : tiles_) {
            low.push_back(city_.source().tiles()[tile].min.z);
            high.push_back(city_.source().tiles()[tile].max.z);
        }
        if (low.empty()) return share;
        auto& of = share < 0.5 ? low : high;
        std::sort(of.begin(), of.end());
        return of[static_cast<std::size_t>(share * static_cast<double>(of.size() - 1))];
    }

    void render_band(int first, int rows, const CancelToken& cancel) {
        const BandRays band(camera_, options_, first, rows);
        std::vector<trace::Hit> hits(band.blocks() * band.padded_rays());
        const trace::Tracer& tracer = city_.tracer();
        city_.visit(tiles_, cancel, [&](const trace::ResidentCity::Pass& pass) {
            const trace::Scene scene(pass.tiles, pass.first ? parts_ : std::span<const trace::Part>());
            parallel_for(band.blocks(), [&](std::size_t block) {
                if (cancel.requested()) return;
                std::vector<trace::Ray> rays;
                for (std::size_t i = 0; i < band.padded_rays(); ++i)
                    rays.push_back(band.ray(band.sample(block, i)));
                const std::size_t batch = tracer.batch_rays(rays);
                const std::span<trace::Hit> out =
                    std::span(hits).subspan(block * band.padded_rays(), rays.size());
                for (std::size_t at = 0; at < rays.size(); at += batch) {
                    const std::size_t n = std::min(batch, rays.size() - at);
                    tracer.closest(scene, std::span(rays).subspan(at, n), out.subspan(at, n));
                }
            });
        });
        cancel.check();
        shade_band(band, first, hits);
    }

    void shade_band(const BandRays& band, int first, std::span<const trace::Hit> hits) {
        const std::size_t base = static_cast<std::size_t>(first) * static_cast<std::size_t>(camera_.width);
        const float weight = 1.0f / static_cast<float>(options_.samples * options_.samples);
        for (std::size_t block = 0; block < band.blocks(); ++block)
            for (std::size_t i = 0; i < band.padded_rays(); ++i) {
                const BandRays::Sample sample = band.sample(block, i);
                if (!band.inside(sample)) continue;
                const std::size_t pixel = base + band.pixel(sample);
                const trace::Ray ray = band.ray(sample);
                const trace::Hit& hit = hits[block * band.padded_rays() + i];
                pixels_[pixel] = pixels_[pixel] + colour(ray, hit) * weight;
                const auto range = static_cast<float>(hit.range_m);
                if (hit.exists() && (depth_[pixel] == 0 || range < depth_[pixel])) depth_[pixel] = range;
                hits_ += hit.exists();
            }
    }

    Colour colour(const trace::Ray& ray, const trace::Hit& hit) const {
        if (!hit.exists()) return shader_.sky(ray.direction);
        Vec3f normal = unpack_normal(hit.normal);
        if (dot(normal, ray.direction) > 0) normal = -normal;
        return shader_.shade({ray.origin + vec_cast<double>(ray.direction) * hit.range_m, normal, hit.range_m,
                              hit.label, hit.intensity, hit.splat_id},
                             ray.direction);
    }

    const Camera& camera_;
    RenderOptions options_;
    std::span<const trace::Part> parts_;
    trace::ResidentCity city_;
    std::vector<std::uint32_t> tiles_;
    Shader shader_;
    std::vector<Colour> pixels_;
    std::vector<float> depth_;
    std::uint64_t hits_ = 0;
};

}  // namespace

Rendering render(const TileSource& city, const trace::Tracer& tracer, const View& view,
                 const CancelToken& cancel, Progress& progress) {
    return Renderer(city, tracer, view).run(cancel, progress);
}

}  // namespace citysplat::view
