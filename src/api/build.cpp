#include "citysplat/build.hpp"

#include "api/parts.hpp"
#include "io/input/reading.hpp"
#include "io/input/tracked_file.hpp"
#include "splat/recipe.hpp"
#include "splat/splat_processor.hpp"
#include "tiling/build/builder.hpp"

#include <thread>

namespace citysplat::api {
inline namespace v1 {

BuildResult build(const std::filesystem::path& city, const BuildOptions& options) {
    return guarded([&] {
        splat::RecipeChanges changes;
        changes.classes = options.classes;
        if (!options.method.empty()) {
            changes.method = splat::method_from(options.method);
            if (!changes.method)
                throw UsageError("\"" + options.method + "\" is not basic, adaptive, descriptors or surfels");
        }
        const splat::Recipe recipe = splat::recipe_for(city, changes);
        ReadOptions read;
        read.crs = options.crs;
        std::shared_ptr<const TrackedBoxes> tracked;
        if (!options.tracks.empty()) tracked = io::read_tracked_boxes(options.tracks);
        tiling::BuildOptions inner;
        if (!options.inputs.empty())
            for (const InputSource& source : expand_inputs(options.inputs)) {
                const std::string reading = io::reading_of(source, read, {});
                inner.inputs.push_back({source.path, options.trajectory,
                                        tracked ? io::with_tracks(reading, *tracked) : reading});
            }
        inner.parameters = recipe.text();
        inner.carve = recipe.carve;
        if (!recipe.classes.classes().empty()) inner.classes = recipe.classes.to_toml();
        inner.tile_size_m = options.tile_size_m;
        inner.memory_bytes = options.memory_bytes;
        inner.refuse_small_memory = true;
        inner.threads = options.threads > 0
                            ? options.threads
                            : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        splat::SplatProcessor processor(recipe.params, recipe.classes);
        Progress progress;
        const auto report = tiling::build_city(city, processor, inner, CancelToken(), progress);
        if (!report.failures.empty())
            throw CorruptionError(std::to_string(report.failures.size()) + " tiles failed, first " +
                                  report.failures[0].tile.text() + ": " + report.failures[0].message);
        return BuildResult{report.generation,  report.published,   report.points.kept,  report.splats,
                           report.tiles_total, report.tiles_built, report.digest.hex(), report.warnings};
    });
}

}  // namespace v1
}  // namespace citysplat::api
