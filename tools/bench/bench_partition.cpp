// bench_partition OUT_DIR FILE… [--memory SIZE]
//
// How fast points get from files into the city's archives, against two baselines of the same run: reading the
// files and doing nothing, and the rate at which the same disk takes bytes.

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/formats/input_list.hpp"
#include "tiling/partition.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <chrono>
#include <cstdio>
#include <cstring>
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

/// Bytes per second that the disk takes, fsync included.
double write_rate(const std::filesystem::path& directory, std::uint64_t bytes) {
    const auto path = directory / "write_rate.tmp";
    std::vector<std::byte> buffer(std::size_t{4} << 20, std::byte{0x5a});
    const double s = measure([&] {
                         File file(path, File::Mode::truncate);
                         for (std::uint64_t done = 0; done < bytes; done += buffer.size()) {
                             std::memcpy(buffer.data(), &done, sizeof done);
                             file.append(buffer);
                         }
                         file.sync();
                     }).wall_s;
    std::filesystem::remove(path);
    return static_cast<double>(bytes) / s;
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
        const std::filesystem::path out = argv[1];
        ObjectStore store{CityPaths(out)};
        store.create_layout();
        const auto inputs = expand_inputs(names);
        std::uint64_t points = 0, archive_bytes = 0, spilled_bytes = 0;
        read_only(inputs);  // the same cache for both
        const Elapsed read = measure([&] { points = read_only(inputs); });
        CancelToken cancel;
        Progress progress;
        const Elapsed cut = measure([&] {
            for (const InputSource& source : inputs) {
                const OpenedInput input(
                    source.path,
                    [&](const std::filesystem::path&, const std::string&) { return source.open(); }, "");
                Progress::Stage stage(progress, "read", 0, "pts");
                const Partitioned p = partition(input, nullptr, store, memory_bytes, cancel, stage);
                store.flush();
                archive_bytes += p.source.object_bytes;
                spilled_bytes += p.spilled_bytes;
            }
        });
        const double disk = write_rate(out, std::max<std::uint64_t>(archive_bytes, std::uint64_t{256} << 20));
        const double n = static_cast<double>(points);
        std::printf("points            %12.0f\n", n);
        const auto row = [n](const char* name, const Elapsed& e) {
            std::printf("%-17s %12.2f Mpts/s   (%.2f s, %.2f s of CPU: %.2f Mpts/s per core)\n", name,
                        n / e.wall_s / 1e6, e.wall_s, e.cpu_s, n / e.cpu_s / 1e6);
        };
        row("read only", read);
        row("partition", cut);
        std::printf("archive           %12.2f bytes/point, %.2f of the 24 in memory\n",
                    static_cast<double>(archive_bytes) / n, static_cast<double>(archive_bytes) / n / 24);
        std::printf("spilled           %12.2f bytes/point\n", static_cast<double>(spilled_bytes) / n);
        std::printf("disk write rate   %12.1f MB/s; the archives alone would take %.2f of the time\n",
                    disk / 1e6, static_cast<double>(archive_bytes) / disk / cut.wall_s);
        std::printf("peak RSS          %12.1f MB of %.0f\n", static_cast<double>(peak_rss_bytes()) / 1e6,
                    static_cast<double>(memory_bytes) / 1e6);
    } catch (const Error& e) {
        std::fprintf(stderr, "bench_partition: %s\n", e.what());
        return static_cast<int>(e.kind());
    }
}
