/// Banks of objects: vans with boxes that err by 10 cm and 2 degrees pass a sensor, are cut out of its scans,
/// aligned, completed and kept; with one thread and with all of them, side by side.
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/moving/made_drive.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/hash.hpp"
#include "io/input/input_list.hpp"
#include "io/tracks/track_file.hpp"
#include "objects/bank_builder.hpp"

#include <tbb/global_control.h>
#include <tbb/info.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace citysplat;
namespace fs = std::filesystem;

namespace {

struct Arguments {
    std::uint64_t objects = 100;
    std::string folder;
    bool all_threads = false;
};

/// Names and bytes of everything below a folder.
Hash128 digest_of(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    Hasher hasher;
    for (const fs::path& file : files)
        hasher.text(fs::relative(file, folder).string()).hash(hash_bytes(read_file(file)));
    return hasher.finish();
}

void run(const Arguments& a, bench::Report& report) {
    const bench::ScratchDirectory scratch;
    fs::path drive = a.folder;
    if (a.folder.empty()) {
        drive = scratch.path() / "drive";
        bench::write_drive(bench::passing_vans(static_cast<std::uint32_t>(a.objects)), drive);
    }
    const CancelToken cancel;
    const std::vector<Track> tracks = read_tracks(drive / "tracks.csv", {}, cancel).tracks;
    objects::ScanInputs scans;
    scans.sources = expand_inputs(std::vector{drive.string()});
    objects::BankBuildOptions options;
    options.source = "drive";
    const auto cores = static_cast<std::size_t>(tbb::info::default_concurrency());
    std::optional<Hash128> digest;
    double alone_s = 0;
    for (const std::size_t threads :
         a.all_threads ? std::vector{cores} : std::vector{std::size_t{1}, cores}) {
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
        const fs::path folder = scratch.path() / ("bank" + std::to_string(threads));
        objects::BankReport made;
        const bench::Elapsed took = bench::measure([&] {
            objects::BankWriter writer(folder);
            Progress progress;
            made = objects::build_bank(writer, {tracks, scans}, options, cancel, progress);
            writer.commit();
        });
        double points = 0, before_m = 0, after_m = 0;
        for (const objects::TrackOutcome& t : made.tracks) {
            points += static_cast<double>(t.points);
            before_m += t.thickness_by_boxes_m, after_m += t.thickness_m;
        }
        const auto count = static_cast<double>(made.tracks.size());
        if (!digest) {
            alone_s = took.wall_s;
            report.text(std::to_string(made.kept()) + " of " + std::to_string(made.tracks.size()) +
                        " tracks became objects, of " + bench::three_digits(points / count) +
                        " points each; surfaces " + bench::three_digits(100 * bench::ratio(before_m, count)) +
                        " cm thick by boxes, " + bench::three_digits(100 * after_m / count) + " cm aligned");
        }
        const std::optional<bench::Ratio> ratio =
            a.all_threads
                ? std::nullopt
                : std::optional(bench::Ratio{bench::ratio(alone_s, took.wall_s), "the speed of one thread"});
        report.detail({"a bank of " + std::to_string(made.kept()) + " objects, " + std::to_string(threads) +
                           (threads == 1 ? " thread" : " threads"),
                       took.wall_s, "s", ratio, true, bench::three_digits(took.cpu_s) + " CPU s"});
        const Hash128 bytes = digest_of(folder);
        if (digest && bytes != *digest)
            throw InputError("the bank of " + std::to_string(threads) +
                             " threads differs from that of one thread");
        digest = bytes;
    }
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    return bench::run_bench(
        {"bench_bank",
         "Builds a bank of objects from a drive with tracked boxes, with one thread and with all of them, "
         "and "
         "holds their bytes against each other. Without a drive one is made: vans that pass a sensor, with "
         "boxes that err by 10 cm and 2 degrees.",
         [&](bench::Flags& flags) {
             flags.text("FOLDER", a.folder, "a drive with times of points and tracks.csv");
             flags.count("--objects", a.objects, 10'000, "vans of the drive that is made");
             flags.flag("--all-threads", a.all_threads, "not with one thread");
         },
         [&](bench::Report& report) { run(a, report); }},
        argc, argv);
}
