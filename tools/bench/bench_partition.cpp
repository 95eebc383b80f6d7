/// How fast points get from files into the city's archives, against two baselines of the same run: reading
/// the files and doing nothing, and the rate at which the same disk takes as many bytes, fsync included.
#include "bench/bench_clock.hpp"
#include "bench/bench_main.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/input_list.hpp"
#include "tiling/points/partition.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

using namespace citysplat;
using namespace citysplat::tiling;

namespace {

using bench::Elapsed;

struct Arguments {
    std::string out;
    std::vector<std::string> inputs;
    std::string memory = "2G";
};

std::uint64_t read_only(const std::vector<InputSource>& inputs) {
    std::uint64_t points = 0;
    tbb::enumerable_thread_specific<PointBatch> batches;
    for (const InputSource& input : inputs) {
        const auto file = input.open();
        points += file->info().points;
        tbb::parallel_for(std::size_t{0}, file->block_count(),
                          [&](std::size_t block) { file->read_block(block, batches.local()); });
    }
    return points;
}

/// The time the disk takes for that many bytes in one file, fsync included. Random bytes: no layer below can
/// make less of them.
Elapsed write_only(const std::filesystem::path& directory, std::uint64_t bytes) {
    const auto path = directory / "write_only.tmp";
    std::vector<std::uint64_t> words(std::size_t{1} << 19);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = rng::bits(1, i);
    const auto buffer = std::as_bytes(std::span(words));
    const Elapsed elapsed = bench::measure([&] {
        File file(path, File::Mode::truncate);
        for (std::uint64_t done = 0; done < bytes; done += buffer.size()) {
            words[0] = done;
            file.append(buffer.first(std::min<std::uint64_t>(buffer.size(), bytes - done)));
        }
        file.sync();
    });
    std::filesystem::remove(path);
    return elapsed;
}

struct Written {
    std::uint64_t archive_bytes = 0, spilled_bytes = 0;
    std::uint64_t bytes() const { return archive_bytes + spilled_bytes; }
};

Written partition_all(const std::vector<InputSource>& inputs, ObjectStore& store,
                      std::uint64_t memory_bytes) {
    CancelToken cancel;
    Progress progress;
    Written written;
    for (const InputSource& source : inputs) {
        const OpenedInput input(
            source.path, [&](const std::filesystem::path&, const std::string&) { return source.open(); }, "");
        Progress::Stage stage(progress, "read", 0, "pts");
        const Partitioned p = partition({input, nullptr, memory_bytes}, store, cancel, stage);
        store.flush();
        written.archive_bytes += p.source.row.object_bytes;
        written.spilled_bytes += p.spilled_bytes;
    }
    return written;
}

/// Objects that are there already would not be written again, and the figure would be too good.
void require_empty(const std::filesystem::path& out) {
    if (std::filesystem::exists(out) && !std::filesystem::is_empty(out))
        throw UsageError(out.string() + " is not empty; give a new directory");
}

void run(const Arguments& arguments, bench::Report& report) {
    const std::filesystem::path out = arguments.out;
    const std::uint64_t memory_bytes = parse_bytes(arguments.memory, "--memory");
    const auto inputs = expand_inputs(arguments.inputs);
    require_empty(out);
    std::uint64_t points = read_only(inputs), input_bytes = 0;  // now both find the files in the cache
    for (const InputSource& input : inputs) input_bytes += std::filesystem::file_size(input.path);
    ObjectStore store{CityPaths(out)};
    store.create_layout();
    const Elapsed read = bench::measure([&] { points = read_only(inputs); });
    Written written;
    const Elapsed cut = bench::measure([&] { written = partition_all(inputs, store, memory_bytes); });
    const Elapsed disk = write_only(out, written.bytes());

    const auto n = static_cast<double>(points);
    const auto row = [](const std::string& what, double rate, const std::string& unit, const Elapsed& e) {
        return bench::Row{what, rate / 1e6, unit, {}, true, bench::three_digits(e.cpu_s) + " CPU s"};
    };
    const auto bytes_a_point = [n](std::uint64_t bytes) {
        return bench::ratio(static_cast<double>(bytes), n);
    };
    report.text(std::to_string(points) + " points");
    report.detail(row("reading the files", n / read.wall_s, "Mpts/s", read));
    report.detail(row("  in bytes", static_cast<double>(input_bytes) / read.wall_s, "MB/s", read));
    const double written_rate = static_cast<double>(written.bytes()) / cut.wall_s;
    report.detail(row("writing as many bytes to the disk", static_cast<double>(written.bytes()) / disk.wall_s,
                      "MB/s", disk));
    auto in_bytes = row("LAS to archives, in bytes written", written_rate, "MB/s", cut);
    in_bytes.ratio = bench::Ratio{bench::ratio(disk.wall_s, cut.wall_s), "writing as many bytes"};
    report.detail(in_bytes);
    auto in_points = row("LAS to archives of the city", n / cut.wall_s, "Mpts/s", cut);
    in_points.ratio = bench::Ratio{bench::ratio(read.wall_s, cut.wall_s), "reading the files"};
    report.row(in_points);
    report.detail({"archive, of 24 bytes in memory", bytes_a_point(written.archive_bytes), "B/point"});
    report.detail({"spilled", bytes_a_point(written.spilled_bytes), "B/point"});
    report.detail(
        {"peak memory", static_cast<double>(peak_rss_bytes()) / 1e6, "MB",
         bench::Ratio{bench::ratio(static_cast<double>(peak_rss_bytes()), static_cast<double>(memory_bytes)),
                      "--memory " + arguments.memory}});
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_partition",
         "How fast points get from files into the archives of a city, against reading the files and doing "
         "nothing, and against writing as many bytes to the same disk.",
         [&](bench::Flags& flags) {
             flags.required("OUT_DIR", arguments.out, "a new directory for the archives");
             flags.required("FILES", arguments.inputs, "point files, folders or patterns");
             flags.text("--memory", arguments.memory, "memory budget, e.g. 512M or 4G (default 2G)");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
