// bench_partition OUT_DIR FILE… [--memory SIZE]
//
// How fast points get from files into the city's archives, against two baselines of the same run: reading the
// files and doing nothing, and the rate at which the same disk takes as many bytes, fsync included.

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/input_list.hpp"
#include "tiling/points/partition.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <sys/resource.h>
#include <vector>

using namespace citysplat;
using namespace citysplat::tiling;

namespace {

/// CPU time of all threads so far: comparable between runs on a busy machine, where wall time is not.
double cpu_seconds() {
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto s = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return s(usage.ru_utime) + s(usage.ru_stime);
}

struct Elapsed {
    double wall_s = 0, cpu_s = 0;
};

template <class Work>
Elapsed measure(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    work();
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
            cpu_seconds() - cpu};
}

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
    const Elapsed elapsed = measure([&] {
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

void bench(const std::filesystem::path& out, const std::vector<InputSource>& inputs,
           std::uint64_t memory_bytes) {
    ObjectStore store{CityPaths(out)};
    store.create_layout();
    std::uint64_t points = 0, input_bytes = 0;
    for (const InputSource& input : inputs) input_bytes += std::filesystem::file_size(input.path);
    read_only(inputs);  // the same cache for both
    const Elapsed read = measure([&] { points = read_only(inputs); });
    Written written;
    const Elapsed cut = measure([&] { written = partition_all(inputs, store, memory_bytes); });
    const Elapsed disk = write_only(out, written.bytes());

    const double n = static_cast<double>(points);
    const auto per_point = [n](std::uint64_t bytes) { return static_cast<double>(bytes) / n; };
    const auto row = [](const char* name, double rate, const char* unit, const Elapsed& e) {
        std::printf("%-22s %10.2f %s  (%.2f s, %.2f s of CPU)\n", name, rate / 1e6, unit, e.wall_s, e.cpu_s);
    };
    std::printf("points                 %10.0f\n", n);
    row("read only", n / read.wall_s, "Mpts/s", read);
    row("  of the files", static_cast<double>(input_bytes) / read.wall_s, "MB/s  ", read);
    row("partition", n / cut.wall_s, "Mpts/s", cut);
    row("  written", static_cast<double>(written.bytes()) / cut.wall_s, "MB/s  ", cut);
    row("disk, as many bytes", static_cast<double>(written.bytes()) / disk.wall_s, "MB/s  ", disk);
    std::printf("partition / disk       %10.2f of the disk's write rate\n", disk.wall_s / cut.wall_s);
    std::printf("partition / read only  %10.2f\n", read.wall_s / cut.wall_s);
    std::printf("archive                %10.2f bytes a point, of 24 in memory\n",
                per_point(written.archive_bytes));
    std::printf("spilled                %10.2f bytes a point\n", per_point(written.spilled_bytes));
    std::printf("peak RSS               %10.1f MB of %.0f\n", static_cast<double>(peak_rss_bytes()) / 1e6,
                static_cast<double>(memory_bytes) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> names;
    std::uint64_t memory_bytes = std::uint64_t{2} << 30;
    for (int i = 2; i < argc; ++i) {
        if (std::string(argv[i]) == "--memory" && i + 1 < argc)
            memory_bytes = parse_bytes(argv[++i], "--memory");
        else
            names.emplace_back(argv[i]);
    }
    if (names.empty()) {
        std::fprintf(stderr, "usage: bench_partition OUT_DIR FILE... [--memory SIZE]\n");
        return 2;
    }
    try {
        bench(argv[1], expand_inputs(names), memory_bytes);
    } catch (const Error& e) {
        std::fprintf(stderr, "bench_partition: %s\n", e.what());
        return static_cast<int>(e.kind());
    }
}
