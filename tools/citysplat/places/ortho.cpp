#include "citysplat/places/ortho.hpp"

#include "citysplat/context.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/places/region_flags.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "model/region/region_source.hpp"
#include "trace/tracer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace citysplat::cli {

namespace {

constexpr std::int64_t kMostPixels = 32767;   ///< a side: libpng takes less than 4 GiB of pixels
constexpr std::uint64_t kBytesPerPixel = 16;  ///< while a picture is made and encoded
constexpr const char* kMosaic = "mosaic.vrt";

std::string size_text(const view::OrthoWindow& w) {
    return std::to_string(w.columns) + "x" + std::to_string(w.rows);
}

void check_size(const view::OrthoWindow& w, std::uint64_t budget_bytes, const char* way_out) {
    const auto bytes =
        kBytesPerPixel * static_cast<std::uint64_t>(w.columns) * static_cast<std::uint64_t>(w.rows);
    if (w.columns > kMostPixels || w.rows > kMostPixels || bytes > budget_bytes)
        throw UsageError("a picture of " + size_text(w) + " pixels takes " + format_bytes(bytes) + " of " +
                         format_bytes(budget_bytes) + ", and no side may have more than " +
                         std::to_string(kMostPixels) + "; " + way_out);
}

/// Around the splats of a city and within the region.
LatticeBox extent(const TileSource& city, const Region& region) {
    LatticeBox box = lattice_box_of(city.tiles()[0]);
    for (const TileEntry& entry : city.tiles()) {
        const LatticeBox b = lattice_box_of(entry);
        box = {std::min(box.min_x, b.min_x), std::min(box.min_y, b.min_y), std::max(box.max_x, b.max_x),
               std::max(box.max_y, b.max_y)};
    }
    const LatticeBox r = region.bounds();
    return {std::max(box.min_x, r.min_x), std::max(box.min_y, r.min_y), std::min(box.max_x, r.max_x),
            std::min(box.max_y, r.max_y)};
}

class OrthoRun {
  public:
    OrthoRun(Context& context, const OrthoWish& wish)
        : context_(context),
          wish_(wish),
          tracer_(trace::make_group_tracer()),
          camera_(*wish.city, *tracer_, wish.options) {}

    void one_picture() {
        const view::OrthoWindow window = camera_.window_of(extent(*wish_.city, wish_.region));
        if (window.empty())
            throw UsageError("there is no pixel to draw; --resolution is coarser than the city");
        check_size(window, context_.memory_bytes(),
                   "lower --resolution, choose a part with --bounds, or make pictures --per-tile");
        parts_.push_back(take(window, wish_.out));
    }

    void per_tile(const TileGrid& grid) {
        create_directories_durably(wish_.out);
        const std::filesystem::path folder = wish_.out;
        Progress::Stage stage(context_.progress(), "ortho", wish_.city->tiles().size(), "tiles");
        for (const TileEntry& entry : wish_.city->tiles()) {
            const LatticeBox core = grid.core(entry.key), r = wish_.region.bounds();
            const view::OrthoWindow window =
                camera_.window_of({std::max(core.min_x, r.min_x), std::max(core.min_y, r.min_y),
                                   std::min(core.max_x, r.max_x), std::min(core.max_y, r.max_y)});
            stage.advance(1);
            if (window.empty()) continue;
            check_size(window, context_.memory_bytes(), "lower --resolution or raise --memory");
            parts_.push_back(take(window, folder / (file_name_of(entry.key) + ".png")));
        }
        if (parts_.empty())
            throw UsageError("there is no pixel to draw; --resolution is coarser than the tiles");
        write_vrt(folder / kMosaic, parts_, wish_.city->crs());
    }

    void report(double seconds) const {
        std::vector<std::string> files;
        for (const MosaicPart& part : parts_) files.push_back(part.picture.string());
        const bool many = std::filesystem::is_directory(wish_.out);
        nlohmann::json result{{"files", files},
                              {"pixels", pixels_},
                              {"pixels_seen", seen_},
                              {"resolution_m", wish_.options.resolution_m},
                              {"seconds", seconds}};
        if (many) result["mosaic"] = (std::filesystem::path(wish_.out) / kMosaic).string();
        context_.result(result, wish_.out + ": " + format_count(files.size()) +
                                    (files.size() == 1 ? " picture, " : " pictures, ") +
                                    format_count(pixels_) + " pixels, " + format_count(seen_) +
                                    " with something in them, " + format_duration(seconds) + "\n");
    }

  private:
    MosaicPart take(const view::OrthoWindow& window, const std::filesystem::path& path) {
        const view::OrthoPicture made = camera_.take(window, context_.cancel());
        const RasterFrame frame = camera_.frame_of(window);
        made.picture.write_png(path, made.opaque);
        write_frame(path, frame, wish_.city->crs());
        pixels_ += made.opaque.size();
        seen_ += made.seen;
        return {path, frame};
    }

    Context& context_;
    const OrthoWish& wish_;
    std::unique_ptr<trace::Tracer> tracer_;
    view::OrthoCamera camera_;
    std::vector<MosaicPart> parts_;
    std::uint64_t pixels_ = 0, seen_ = 0;
};

}  // namespace

void OrthoFlags::add_to(CLI::App& verb) {
    verb.add_flag("--ortho", ortho,
                  "from straight above, as a map: PNG with a world file and .prj; --shade intensity, class, "
                  "height, normal or splat");
    options.push_back(verb.add_option("--resolution", resolution_m, "with --ortho: side of a pixel")
                          ->check(in_range({0.001, 100, "m"}))
                          ->capture_default_str());
    options.push_back(verb.add_flag("--per-tile", per_tile,
                                    "with --ortho: a picture for each tile in the directory --out, and "
                                    "mosaic.vrt of all of them"));
    options.push_back(verb.add_option("--heights", heights_m,
                                      "with --ortho and --shade height: where the colours begin and end "
                                      "(default: from the city)")
                          ->delimiter(',')
                          ->expected(2)
                          ->check(in_range(ranges::kPosition_m)));
}

void run_ortho(Context& context, const OrthoFlags& flags, OrthoWish wish) {
    const Stopwatch watch;
    wish.options.resolution_m = flags.resolution_m;
    if (!flags.heights_m.empty()) {
        if (!(flags.heights_m[0] < flags.heights_m[1]))
            throw UsageError("--heights: the lower one comes first, and they differ");
        wish.options.heights_m = {flags.heights_m[0], flags.heights_m[1]};
    }
    OrthoRun run(context, wish);
    if (flags.per_tile)
        run.per_tile(TileGrid(static_cast<double>(wish.tile_size_m)));
    else
        run.one_picture();
    run.report(watch.seconds());
}

}  // namespace citysplat::cli
