#include "citysplat/building/build_flags.hpp"

#include "citysplat/context.hpp"
#include "citysplat/number_flags.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/tracks/track_file.hpp"
#include "objects/box_times.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <malloc.h>
#include <memory>

namespace citysplat::cli {

mesh::CityRecipeChanges BuildFlags::changes() const {
    mesh::CityRecipeChanges all;
    splat::RecipeChanges& changes = all.splats;
    if (!method_.empty()) changes.method = splat::method_from(method_);
    changes.classes = classes_;
    changes.params = params_;
    if (resample_ || no_resample_) changes.resample = resample_;
    if (carve_ || no_carve_) changes.carve = carve_;
    all.products = products_;
    all.voxel_m = voxel_m_;
    all.mesh = mesh_params_;
    return all;
}

/// The moving boxes of --tracks. Says when their times are not those at which the boxes hold: whoever draws
/// boxes around a scan gives all of them one time.
std::shared_ptr<const TrackedBoxes> BuildFlags::tracked_boxes(const std::vector<InputSource>& sources,
                                                              const ReadOptions& reading,
                                                              const Context& context) const {
    auto tracked = io::read_tracked_boxes(tracks_);
    context.say(tracks_ + ": " + format_count(tracked->boxes.size()) +
                " tracks move; what is in their boxes is left out");
    constexpr std::size_t kAsked = 20;
    objects::ScanInputs some;
    some.reading = reading;
    for (std::size_t i = 0; i < sources.size(); i += 1 + sources.size() / kAsked)
        if (sources[i].drive) some.sources.push_back(sources[i]);
    if (some.sources.empty() || tracked->boxes.size() == 0) return tracked;
    const auto study = objects::study_box_times(some, read_tracks(tracks_, {}, context.cancel()).tracks,
                                                objects::BoxTimes::automatic, context.cancel());
    const std::uint64_t exact = study.inside[0];
    const std::uint64_t best = study.inside[static_cast<std::size_t>(study.chosen) - 1];
    if (best > exact + exact / 50)
        context.warn(tracks_ + ": its boxes hold " + format_count(exact) + " points of " +
                     format_count(some.sources.size()) + " scans if their times are exact, and " +
                     format_count(best) + " if each is around a scan that has its " +
                     objects::kBoxTimes.of(study.chosen) +
                     " then; citysplat bank build --aligned-tracks writes tracks with exact times, which are "
                     "better here");
    return tracked;
}

/// The inputs of one drive; all share a trajectory.
std::vector<tiling::BuildInput> BuildFlags::inputs_of(const std::vector<std::string>& words,
                                                      const std::string& trajectory_file,
                                                      const Context& context) const {
    std::vector<tiling::BuildInput> inputs;
    if (words.empty()) return inputs;
    const TrajectoryOptions trajectory = trajectory_reading_.options();
    const ReadOptions options = reading_.read_options(trajectory_file, trajectory);
    const std::vector<InputSource> sources = expand_inputs(
        words, reading_.labels(), reading_.drive_options(!trajectory_file.empty()), context.cancel());
    if (const auto missing = missing_labels(sources)) context.warn(*missing);
    for (const auto& drive : drives_of(sources))
        for (const std::string& text : drive->assumptions)
            context.say(drive->folder.string() + " (" + drive->kind + "): " + text);
    std::shared_ptr<const TrackedBoxes> tracked;
    if (!tracks_.empty()) tracked = tracked_boxes(sources, options, context);
    for (const InputSource& source : sources) {
        const std::string reading = io::reading_of(source, options, trajectory);
        inputs.push_back(
            {source.path, trajectory_file, tracked ? io::with_tracks(reading, *tracked) : reading});
    }
    return inputs;
}

std::vector<tiling::BuildInput> BuildFlags::inputs(const Context& context) const {
    std::vector<tiling::BuildInput> all = inputs_of(inputs_, trajectory_, context);
    for (const auto& words : drives_) {
        if (words[0] != "-" && !std::filesystem::is_regular_file(words[0]))
            throw UsageError("--drive " + words[0] + ": there is no such trajectory");
        for (tiling::BuildInput& input :
             inputs_of({words.begin() + 1, words.end()}, words[0] == "-" ? "" : words[0], context))
            all.push_back(std::move(input));
    }
    return all;
}

mesh::CityRecipe BuildFlags::recipe() const { return mesh::city_recipe_for(city_, changes()); }

tiling::BuildOptions BuildFlags::options(const mesh::CityRecipe& recipe, const Context& context) const {
    tiling::BuildOptions options;
    options.inputs = inputs(context);
    for (const std::string& path : remove_) options.remove.emplace_back(path);
    options.recalibrate = recalibrate_;
    options.measure_drift = measure_drift_;
    options.parameters = recipe.text();
    options.carve = recipe.splats.carve;
    if (!recipe.splats.classes.classes().empty()) options.classes = recipe.splats.classes.to_toml();
    options.tile_size_m = tile_size_m_;
    options.memory_bytes = context.memory_bytes();
    options.refuse_small_memory = true;
    options.threads = context.threads();
    options.gate = thickness_.gate();
    if (has_note()) options.note = note_;
    if (exactly_) options.exactly_but = most_gone_percent_ / 100;
    return options;
}

namespace {

/// For CLI11: nothing when it can stand in a table, else what is wrong.
std::string is_note(const std::string& text) {
    constexpr std::size_t kLongest = 1000;
    if (text.empty() || text.size() > kLongest)
        return "a note has 1 to " + std::to_string(kLongest) + " bytes, this one has " +
               std::to_string(text.size());
    const bool one_line = std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; });
    return one_line ? std::string() : "a note is one line without control characters";
}

}  // namespace

void BuildFlags::add_to(CLI::App& verb) {
    verb.add_option("city", city_, "directory of the city")->required();
    verb.add_option(
            "inputs", inputs_,
            "point clouds, folders, patterns or @lists to add; without any, the known ones are checked")
        ->type_name("INPUT");
    verb.add_option("--trajectory", trajectory_, "where the sensor was, by GPS time, for these inputs")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option(
            "--drive", drives_,
            "the clouds of another drive with its trajectory (- for none); may be given several times")
        ->expected(2, 1 << 20)
        ->type_name("TRAJECTORY INPUT...");
    verb.add_option("--tracks", tracks_,
                    "boxes of objects over time (docs/scenarios.md): points of these inputs that are in the "
                    "box of something that moves, where it was at their time, are left out")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option("--method", method_,
                    "basic, adaptive, descriptors or surfels (default: what the city has, else "
                    "adaptive with a class map and descriptors without)")
        ->check(CLI::IsMember({"basic", "adaptive", "descriptors", "surfels"}))
        ->type_name("NAME");
    verb.add_option("--classes", classes_, "class map of the labels: a built-in name or a TOML file")
        ->type_name("MAP");
    verb.add_option("--tile-size", tile_size_m_, "edge of a tile in whole metres; changes no splat")
        ->check(whole_from(1, 512))
        ->type_name("M");
    verb.add_option("--params", params_,
                    "numbers of the method: a TOML file, paper, or default (docs/parameters.md)")
        ->type_name("FILE");
    verb.add_option(
            "--product", products_,
            "what is made of the points: splats, mesh (an adaptive TSDF), imls (a mesh, too) or several: "
            "splats,mesh (default: what the city has, else splats)")
        ->type_name("KINDS");
    verb.add_option("--voxel", voxel_m_,
                    "edge of the voxels of a mesh in metres (default for a new mesh: 0.2, imls: 0.07)")
        ->check(in_range({mesh::MeshParams::kLeastVoxel_m, mesh::MeshParams::kMostVoxel_m, "m"}))
        ->type_name("M");
    verb.add_option("--mesh-param", mesh_params_,
                    "another number of a mesh, NAME=VALUE, or imls.NAME=VALUE where a city has two "
                    "(docs/parameters.md); may be given several times")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    auto* no_resample = verb.add_flag("--no-resample", no_resample_, "one generation of splats only");
    verb.add_flag("--resample", resample_, "even out the density and generate twice (default for a new city)")
        ->excludes(no_resample);
    auto* no_carve =
        verb.add_flag("--no-carve", no_carve_, "keep what moved, although rays passed through it");
    verb.add_flag(
            "--carve", carve_,
            "leave out points that rays of other times passed through: what moved (default for a new city; "
            "needs sensor positions and times)")
        ->excludes(no_carve);
    verb.add_flag("--recalibrate", recalibrate_, "measure the city-wide means again, and rebuild");
    verb.add_flag("--measure-drift", measure_drift_,
                  "measure the means of the present inputs, for status; changes nothing else");
    verb.add_option("--remove", remove_, "forget this input")->type_name("INPUT")->allow_extra_args(false);
    auto* exactly =
        verb.add_flag("--exactly", exactly_, "the inputs given are all: the city forgets others that it has");
    verb.add_option("--most-gone", most_gone_percent_,
                    "with --exactly: change nothing (exit code 78) when more of the known inputs would be "
                    "forgotten; those that only have another name do not count")
        ->needs(exactly)
        ->check(in_range({0, 100, "%"}))
        ->capture_default_str()
        ->type_name("PERCENT");
    verb.add_option("--note", note_, "a line about the new generation, for status --history")
        ->check(is_note)
        ->type_name("TEXT");
    thickness_.add_to(verb);
    reading_.add_to(verb);
    trajectory_reading_.add_to(verb);
}

/// Tiles come and go with hundreds of megabytes each. Taking that from the system anew for every tile costs a
/// tenth of the time, in page faults; so it stays in one heap, most of which the next tile uses again. A heap
/// has holes, though, which count as well: with a small budget what is given back goes to the system at once.
void keep_memory_between_tiles(std::uint64_t memory_bytes) {
    const bool large = memory_bytes >= std::uint64_t{1} << 30;
    ::mallopt(M_ARENA_MAX, 1);
    ::mallopt(M_MMAP_THRESHOLD, large ? 1 << 30 : 1 << 18);
    ::mallopt(M_TRIM_THRESHOLD, large ? 256 << 20 : 4 << 20);
}

}  // namespace citysplat::cli
