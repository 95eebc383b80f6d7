#include "citysplat/viewing/kept_levels.hpp"

#include "core/bytes.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>

namespace citysplat::cli {

void LevelFlags::add_to(CLI::App& verb) {
    verb.add_option(
            "--levels", directory,
            "directory that keeps levels of detail for the next time (default: citysplat/levels in the "
            "cache directory of the user)")
        ->type_name("DIR");
    verb.add_option("--levels-size", most_bytes, "most bytes in it; 0: nothing is kept")
        ->capture_default_str()
        ->type_name("SIZE");
}

std::optional<splat::LevelStore> LevelFlags::store() const {
    const std::uint64_t most = parse_bytes(most_bytes, "--levels-size");
    std::filesystem::path where = directory;
    const auto variable = [](const char* name) -> std::filesystem::path {
        const char* value = std::getenv(name);
        return value ? value : "";
    };
    // As the XDG base directory specification has it: a relative path there does not count.
    if (where.empty() && variable("XDG_CACHE_HOME").is_absolute())
        where = variable("XDG_CACHE_HOME") / "citysplat/levels";
    if (where.empty() && variable("HOME").is_absolute()) where = variable("HOME") / ".cache/citysplat/levels";
    if (where.empty() || most == 0) return std::nullopt;
    return std::optional<splat::LevelStore>(std::in_place, where, most);
}

MadeLevels make_levels(const view::ShownCity& city, splat::PyramidOptions options, Context& context) {
    options.store_key = city.levels_key();
    splat::LevelPyramid levels(city.tiles, options);
    MadeLevels made;
    made.key = options.store_key;
    for (const splat::CubeId& root : levels.roots())
        made.top_discs += levels.cube(root, context.cancel())->discs.size();
    made.columns_read = levels.progress().done;
    made.missing = levels.missing().size();
    made.kept_bytes = options.store->used_bytes();
    if (made.missing > 0)
        context.warn(std::to_string(made.missing) +
                     " tiles cannot be read; cubes that should have them are not kept");
    return made;
}

}  // namespace citysplat::cli
