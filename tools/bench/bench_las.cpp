/// How fast point files are read, against a plain read of the same bytes in the same run, and per second of
/// processor time, which a busy machine does not distort. With LASlib also the same points as LAZ.
///   bench_las [million points] [file.las|laz …]
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/open_point_file.hpp"
#include "io/las/laslib.hpp"
#include "io/write/point_sink.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

using namespace citysplat;

namespace {

double seconds_of(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double cpu_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void in_threads(int threads, const std::function<void()>& work) {
    std::vector<std::thread> pool;
    for (int t = 1; t < threads; ++t) pool.emplace_back(work);
    work();
    for (auto& thread : pool) thread.join();
}

double plain_read(const std::filesystem::path& path, int threads) {
    const File file(path, File::Mode::read);
    constexpr std::uint64_t kPiece = 1 << 20;
    const std::uint64_t size = file.size();
    std::atomic<std::uint64_t> next{0};
    return seconds_of([&] {
        in_threads(threads, [&] {
            std::vector<std::byte> buffer(kPiece);
            for (std::uint64_t at; (at = kPiece * next++) < size;) (void)file.read_some_at(at, buffer);
        });
    });
}

double read_points(const PointFile& file, int threads, std::uint64_t& points) {
    std::atomic<std::uint64_t> next{0}, count{0};
    const double seconds = seconds_of([&] {
        in_threads(threads, [&] {
            PointBatch batch;
            for (std::uint64_t i; (i = next++) < file.block_count();) {
                file.read_block(static_cast<std::size_t>(i), batch);
                count += batch.size();
            }
        });
    });
    points = count;
    return seconds;
}

void measure(const std::filesystem::path& path, ReadOptions::Reader reader = ReadOptions::Reader::automatic) {
    ReadOptions options;
    options.units = ReadOptions::Units::as_is;
    options.reader = reader;
    const auto file = open_point_file(path, options);
    std::printf("%s: %s\n", path.filename().c_str(), file->info().format.c_str());
    for (const int threads : {1, 2}) {
        double best_plain = 1e9, best = 1e9, best_cpu = 1e9;
        std::uint64_t points = 0;
        for (int round = 0; round < 5; ++round) {
            best_plain = std::min(best_plain, plain_read(path, threads));
            const double cpu = cpu_seconds();
            best = std::min(best, read_points(*file, threads, points));
            best_cpu = std::min(best_cpu, cpu_seconds() - cpu);
        }
        const double bytes = static_cast<double>(std::filesystem::file_size(path)),
                     n = static_cast<double>(points);
        std::printf(
            "  %d thread%s  plain read %5.2f GB/s   points %6.1f Mpts/s = %5.2f GB/s   ratio %.2f   %6.1f "
            "Mpts per "
            "CPU second\n",
            threads, threads == 1 ? " " : "s", bytes / best_plain * 1e-9, n / best * 1e-6,
            bytes / best * 1e-9, best_plain / best, n / best_cpu * 1e-6);
    }
}

void write_cloud(const std::filesystem::path& path, std::size_t points) {
    const auto sink = create_las(path);
    PointBatch b;
    for (std::size_t at = 0; at < points; at += b.size()) {
        b.clear();
        for (std::size_t i = at; i < std::min(points, at + 65536); ++i) {
            b.x.push_back(651000 + rng::uniform(1, i, 0, 1000));
            b.y.push_back(6860000 + rng::uniform(2, i, 0, 1000));
            b.z.push_back(rng::uniform(3, i, 0, 50));
            b.intensity.push_back(static_cast<std::uint16_t>(i));
            b.label.push_back(static_cast<std::uint16_t>(i % 20));
            b.gps_time.push_back(static_cast<double>(i) * 1e-6);
        }
        sink->write(b);
    }
    sink->finish();
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t millions = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10;
    const auto path = std::filesystem::temp_directory_path() / "citysplat-las-bench.las";
    const double writing = seconds_of([&] { write_cloud(path, millions * 1'000'000); });
    std::printf("writing %zu M points, making them included: %.1f Mpts/s\n", millions,
                static_cast<double>(millions) / writing);
    measure(path);
    if (io::laslib_available()) {
        // The same points compressed, by our decoder and by LASlib's, which is the one to be compared with.
        const auto laz = io::replace_by_laz(path);
        measure(laz, ReadOptions::Reader::native);
        measure(laz, ReadOptions::Reader::laslib);
        std::filesystem::remove(laz);
    }
    std::filesystem::remove(path);
    for (int i = 2; i < argc; ++i) measure(argv[i]);
}
