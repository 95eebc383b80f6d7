/// How fast point files are read, against a plain read of the same bytes in the same run, and per second of
/// processor time, which a busy machine does not distort. With LASlib also the same points as LAZ.
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/open_point_file.hpp"
#include "io/las/laslib.hpp"
#include "io/write/point_sink.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

using namespace citysplat;

namespace {

struct Arguments {
    std::uint64_t millions = 10;
    std::vector<std::string> files;
};

void in_threads(int threads, const std::function<void()>& work) {
    std::vector<std::jthread> pool;
    for (int t = 1; t < threads; ++t) pool.emplace_back(work);
    work();
}

void plain_read(const std::filesystem::path& path, int threads) {
    const File file(path, File::Mode::read);
    constexpr std::uint64_t kPiece = 1 << 20;
    const std::uint64_t size = file.size();
    std::atomic<std::uint64_t> next{0};
    in_threads(threads, [&] {
        std::vector<std::byte> buffer(kPiece);
        for (std::uint64_t at; (at = kPiece * next++) < size;) (void)file.read_some_at(at, buffer);
    });
}

std::uint64_t read_points(const PointFile& file, int threads) {
    std::atomic<std::uint64_t> next{0}, count{0};
    in_threads(threads, [&] {
        PointBatch batch;
        for (std::uint64_t i; (i = next++) < file.block_count();) {
            file.read_block(static_cast<std::size_t>(i), batch);
            count += batch.size();
        }
    });
    return count;
}

std::unique_ptr<PointFile> open(const std::filesystem::path& path, ReadOptions::Reader reader) {
    ReadOptions options;
    options.units = ReadOptions::Units::as_is;
    options.reader = reader;
    return open_point_file(path, options);
}

/// One row for each number of threads.
std::vector<bench::Row> measure(const std::filesystem::path& path,
                                ReadOptions::Reader reader = ReadOptions::Reader::automatic) {
    const auto file = open(path, reader);
    std::vector<bench::Row> rows;
    for (const int threads : {1, 2}) {
        constexpr int kRounds = 5;
        std::uint64_t points = 0;
        const auto plain = bench::best_of(kRounds, [&] { plain_read(path, threads); });
        const auto reading = bench::best_of(kRounds, [&] { points = read_points(*file, threads); });
        const double bytes = static_cast<double>(std::filesystem::file_size(path)),
                     millions = static_cast<double>(points) * 1e-6;
        rows.push_back({"reading " + file->info().format + (threads == 1 ? ", 1 thread" : ", 2 threads"),
                        millions / reading.wall_s, "Mpts/s",
                        bench::Ratio{bench::ratio(plain.wall_s, reading.wall_s), "a plain read of the bytes"},
                        true,
                        bench::three_digits(bytes / reading.wall_s * 1e-9) + " GB/s; " +
                            bench::three_digits(millions / reading.cpu_s) + " Mpts per CPU second"});
    }
    return rows;
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

/// The same points compressed, by our decoder and by LASlib's, which is the one to be compared with.
void measure_laz(const std::filesystem::path& las, bench::Report& report) {
    const auto laz = io::replace_by_laz(las);
    auto ours = measure(laz, ReadOptions::Reader::native);
    const auto theirs = measure(laz, ReadOptions::Reader::laslib);
    for (std::size_t i = 0; i < ours.size(); ++i) {
        report.detail(theirs[i]);
        ours[i].ratio = bench::Ratio{bench::ratio(ours[i].figure, theirs[i].figure), "LASlib"};
        report.detail(ours[i]);
    }
}

void run(const Arguments& arguments, bench::Report& report) {
    for (const std::string& file : arguments.files) open(file, ReadOptions::Reader::automatic);
    const bench::ScratchDirectory scratch;
    const auto las = scratch.path() / "cloud.las";
    const auto writing = bench::measure([&] { write_cloud(las, arguments.millions * 1'000'000); });
    report.detail({"writing LAS, making the points included",
                   static_cast<double>(arguments.millions) / writing.wall_s, "Mpts/s"});
    auto rows = measure(las);
    report.detail(rows.front());
    rows.back().what = "reading LAS, 2 threads";
    report.row(rows.back());
    if (io::laslib_available()) measure_laz(las, report);
    for (const std::string& file : arguments.files) {
        report.text(file);
        for (const bench::Row& row : measure(file)) report.detail(row);
    }
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench({"bench_las",
                             "How fast point files are read, against a plain read of the same bytes; with "
                             "LASlib also LAZ, against "
                             "LASlib.",
                             [&](bench::Flags& flags) {
                                 flags.count("MILLIONS", arguments.millions, 10'000,
                                             "points of the cloud that is made, in millions");
                                 flags.texts("FILES", arguments.files, "other files to read");
                             },
                             [&](bench::Report& report) { run(arguments, report); }},
                            argc, argv);
}
