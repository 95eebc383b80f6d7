#include "datasets/synth/synth.hpp"

#include "citysplat/context.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

struct SynthFlags {
    std::string directory, format = "las", mixed_pixels = "on", outliers = "on";
    synth::SynthOptions options;
    double localisation_m = -1;
    bool overwrite = false;
    std::vector<double> origin_m;
};

synth::SynthOptions resolve(const SynthFlags& flags) {
    synth::SynthOptions options = flags.options;
    const bool strict = options.noise_m == 0;
    if (flags.localisation_m >= 0)
        options.localisation_m = flags.localisation_m;
    else if (strict)
        options.localisation_m = 0;
    options.mixed_pixels = flags.mixed_pixels == "on" && !strict;
    options.outliers = flags.outliers == "on" && !strict;
    options.format = flags.format == "ply" ? synth::CloudFormat::ply : synth::CloudFormat::las;
    if (!flags.origin_m.empty()) {
        options.origin_m.x = flags.origin_m[0];
        options.origin_m.y = flags.origin_m[1];
        if (flags.origin_m.size() > 2) options.origin_m.z = flags.origin_m[2];
    }
    return options;
}

void run(Context& context, const SynthFlags& flags) {
    const Stopwatch watch;
    if (!flags.overwrite && synth::holds_drive(flags.directory))
        throw UsageError(
            flags.directory +
            " holds another synthetic drive; --overwrite replaces it, or give another directory");
    const synth::TruthFile truth =
        synth::write_drive(flags.directory, resolve(flags), context.progress(), context.cancel());
    nlohmann::json files = nlohmann::json::array();
    for (const auto& scanner : truth.scanners)
        for (const auto& file : scanner.files) files.push_back(file.name);
    const std::string text = format_count(truth.points) + " points in " + std::to_string(files.size()) +
                             " files, " + format_duration(watch.seconds()) + ": " + flags.directory + "\n";
    context.result({{"files", files},
                    {"points", truth.points},
                    {"length_m", truth.options.length_m},
                    {"seed", truth.options.seed},
                    {"trajectory", "trajectory.tum"},
                    {"truth", "truth.json"},
                    {"seconds", watch.seconds()}},
                   text);
}

}  // namespace

void add_synth(CLI::App& app, Context& context) {
    auto flags = std::make_shared<SynthFlags>();
    auto& options = flags->options;
    CLI::App& verb = *app.add_subcommand(
        "synth", "a synthetic city and a mobile-mapping drive through it, with analytic truth");
    verb.fallthrough();
    verb.add_option("out", flags->directory, "directory to write (new or empty)")->required();
    verb.add_option("--length", options.length_m, "length of the drive")
        ->check(in_range({5, 1e6, "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--seed", options.seed, "which city, which drive")
        ->check(whole_from(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()))
        ->capture_default_str()
        ->type_name("N");
    verb.add_flag("--actors", options.actors,
                  "also write what moves: meshes, tracks and a scenario for simulate, in actors/");
    verb.add_option("--points-per-metre", options.points_per_metre, "mean density along the drive")
        ->check(in_range({10, 1e7}))
        ->capture_default_str()
        ->type_name("N");
    verb.add_option("--noise", options.noise_m,
                    "standard deviation of ranges; 0: a perfect survey (no localisation error, mixed pixels "
                    "or outliers either)")
        ->check(in_range({0, 1, "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--localisation", flags->localisation_m,
                    "standard deviation of the recorded position (default 0.012, or 0 with --noise 0)")
        ->check(in_range({0, 1, "m"}))
        ->type_name("M");
    verb.add_option("--mixed-pixels", flags->mixed_pixels, "ranges between two surfaces at edges")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
    verb.add_option("--outliers", flags->outliers, "a few returns out of thin air")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
    verb.add_option("--range", options.range_m, "how far the scanners see")
        ->check(in_range({5, 200, "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_flag("--profile-scanner", options.profile,
                  "add a one-beam profile scanner, in files of its own");
    verb.add_option("--format", flags->format, "of the clouds")
        ->check(CLI::IsMember({"las", "ply"}))
        ->capture_default_str();
    verb.add_option("--files", options.files, "cloud files per scanner (default: 2, or one per 10 M points)")
        ->check(whole_from(1, 10000))
        ->type_name("N");
    verb.add_option("--origin", flags->origin_m,
                    "world coordinates of the city, whole metres (default 651000,6861000,35)")
        ->delimiter(',')
        ->expected(2, 3)
        ->check(whole_from(-50'000'000, 50'000'000))
        ->type_name("E,N[,Z]");
    verb.add_flag("--overwrite", flags->overwrite, "replace the drive that is in that directory");
    verb.footer(
        "Example: citysplat synth demo/drive --length 200 --seed 7\n"
        "Writes cloud_*.las, trajectory.tum (position of the scanner) and truth.json.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
