/// A long drive there and back under a small memory budget: what streaming from the disk costs.
///
/// A street of N splats is repeated along the drive and written as a city on disk, 60 million splats over 10
/// km. Measured is the way back. With everything resident nothing is loaded any more by then; under the
/// budget every tile comes from the disk again, and the page cache was emptied before the drive and at the
/// turn. Printed are the throughput of both, in turns and best of two, and of a drive without prefetching,
/// the share of loading that prefetching hides, and the growth of the resident set on the way back.
#include "bench/bench_city.hpp"
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/disk_city.hpp"
#include "core/math/math_hd.hpp"
#include "sim/drive/simulation.hpp"
#include "tiling/store/city_reader.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;

namespace {

constexpr double kSpeed_m_s = 10, kPiece_m = 416;
constexpr int kRounds = 2;
constexpr std::uint64_t kEverything = std::uint64_t{64} << 30;

struct Arguments {
    double km = 10, resident_mib = 500, rate_hz = 2;
    std::uint64_t splats = 2'800'000;  ///< asked for; the street has 2.4 million then
};

/// The pieces of a street one behind the other.
class LongCity final : public TileSource {
  public:
    LongCity(const TileSource& piece, int copies) : piece_(piece) {
        for (int c = 0; c < copies; ++c)
            for (TileEntry e : piece.tiles()) {
                e.key.ix += c * static_cast<int>(kPiece_m / 32);
                e.min.x += c * kPiece_m;
                e.max.x += c * kPiece_m;
                entries_.push_back(e);
            }
    }
    std::span<const TileEntry> tiles() const override { return entries_; }
    SplatTile load(std::size_t i) const override {
        const SplatTile tile = piece_.load(i % piece_.tiles().size());
        TileFrame frame = tile.frame();
        frame.x_m +=
            static_cast<std::int64_t>(i / piece_.tiles().size()) * static_cast<std::int64_t>(kPiece_m);
        SplatTile moved(frame, tile.size());
        std::ranges::copy(tile.bytes(), moved.mutable_bytes().begin());
        return moved;
    }
    const ClassMap& classes() const override { return piece_.classes(); }

  private:
    const TileSource& piece_;
    std::vector<TileEntry> entries_;
};

std::uint64_t resident_set_bytes() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t pages = 0, resident = 0;
    file >> pages >> resident;
    return resident * 4096;
}

/// Watches time and memory on the way back.
class Watch : public ScanSink {
  public:
    Watch(std::size_t scans, std::function<void()> turn)
        : half_(scans / 2), last_(scans - 1), turn_(std::move(turn)) {}
    void consume(const Scan&) override {}
    void conclude(const Scan& scan) override {
        if (scan.index == half_) {
            turn_();
            at_half_ = now();
        }
        if (scan.index == last_) at_end_ = now();
    }
    double scans_per_s() const {
        return bench::ratio(static_cast<double>(last_ - half_), at_end_.wall_s - at_half_.wall_s);
    }
    double cpu_ms() const {
        return bench::ratio(1e3 * (at_end_.cpu_s - at_half_.cpu_s), static_cast<double>(last_ - half_));
    }
    double drift() const {
        return bench::ratio(static_cast<double>(at_end_.bytes), static_cast<double>(at_half_.bytes)) - 1;
    }
    std::uint64_t bytes_at_end() const { return at_end_.bytes; }

  private:
    struct Moment {
        double wall_s = 0, cpu_s = 0;
        std::uint64_t bytes = 1;
    };
    static Moment now() { return {bench::wall_now_s(), bench::cpu_now_s(), resident_set_bytes()}; }

    std::size_t half_, last_;
    std::function<void()> turn_;
    Moment at_half_, at_end_;
};

/// There and back again.
Trajectory return_trip(double x0, double y0, double length_m) {
    std::vector<StampedPose> poses;
    const Quaternion back = from_yaw_pitch_roll(exact::kPi, 0, 0);
    for (double s = 0; s <= 2 * length_m; s += 5)
        poses.push_back(
            {s / kSpeed_m_s,
             {{x0 + std::min(s, 2 * length_m - s), y0, 1.9}, s < length_m ? Quaternion{} : back}});
    return Trajectory(poses);
}

/// The drives of one run, under different budgets.
class StreamBench {
  public:
    StreamBench(const std::filesystem::path& path, const Arguments& arguments, bench::Report& report)
        : path_(path),
          city_(path),
          rate_hz_(arguments.rate_hz),
          trajectory_(return_trip(west_end(city_) + 10, 6861000, arguments.km * 1000)),
          report_(report) {}

    const TileSource& city() const { return city_; }

    struct Outcome {
        double scans_per_s;
        double cpu_ms;  ///< processor time of a scan
        double hidden;  ///< share of the loading that did not hold up the simulation
        double drift;   ///< of the resident set

        void keep_better(const Outcome& other) {
            scans_per_s = std::max(scans_per_s, other.scans_per_s);
            cpu_ms = std::min(cpu_ms, other.cpu_ms);
        }
    };
    Outcome drive(const std::string& name, std::uint64_t budget_bytes, bool prefetch) {
        SimulationOptions options;
        options.schedule.rate_hz = rate_hz_;
        options.cache.budget_bytes = budget_bytes;
        options.cache.prefetch = prefetch;
        CancelToken cancel;
        Progress progress;
        const auto empty_page_cache = [this] { bench::forget_pages(path_); };
        empty_page_cache();
        Watch watch(scan_times(run_, trajectory_, options.schedule).size(), empty_page_cache);
        const SimulationReport r =
            simulate({city_, *tracer_, run_, trajectory_, options}, watch, cancel, progress);
        bench::require_hits(r.hits, r.rays, "give the street more --splats");
        const Outcome outcome{watch.scans_per_s(), watch.cpu_ms(),
                              1 - bench::ratio(r.cache.wait_s, r.cache.load_s), watch.drift()};
        char note[200];
        std::snprintf(note, sizeof note,
                      "%.2f CPU ms a scan; %llu tiles loaded, %.0f MiB of tiles at most, waited %.2f of %.2f "
                      "s loading, RSS %.0f "
                      "MiB, drift %+.1f %%",
                      outcome.cpu_ms, static_cast<unsigned long long>(r.cache.tiles_loaded),
                      static_cast<double>(r.cache.peak_bytes) / 1048576.0, r.cache.wait_s, r.cache.load_s,
                      static_cast<double>(watch.bytes_at_end()) / 1048576.0, 100 * outcome.drift);
        report_.detail({name, outcome.scans_per_s, "scans/s", {}, true, note});
        return outcome;
    }

  private:
    static double west_end(const TileSource& city) {
        double x = city.tiles()[0].min.x;
        for (const TileEntry& tile : city.tiles()) x = std::min(x, tile.min.x);
        return x;
    }

    std::filesystem::path path_;
    const tiling::CityReader city_;
    double rate_hz_;
    Trajectory trajectory_;
    bench::Report& report_;
    const SensorRun run_{Sensor::load("hdl-64e"), {}, 1};
    const std::unique_ptr<Tracer> tracer_ = make_group_tracer(
        {.instruction_set = {}, .max_range_m = static_cast<float>(run_.sensor.max_range_m)});
};

void run(const Arguments& arguments, bench::Report& report) {
    const bench::ScratchDirectory scratch;
    const std::filesystem::path path = scratch.path() / "city";
    {
        const auto piece = bench::open_or_make_city("", arguments.splats);
        bench::write_city(LongCity(*piece, static_cast<int>(arguments.km * 1000 / kPiece_m) + 1), path);
    }
    StreamBench stream(path, arguments, report);
    report.text(bench::three_digits(arguments.km) + " km, " + std::to_string(stream.city().tiles().size()) +
                " tiles, " + std::to_string(bench::count_splats(stream.city())) +
                " splats on disk; HDL-64E at " + bench::three_digits(arguments.rate_hz) +
                " scans a second of driving, the way back");
    // First: what a drive with more memory leaves behind would hide the growth of this one.
    const auto budget = static_cast<std::uint64_t>(arguments.resident_mib * 1048576.0);
    auto streamed = stream.drive("budget, prefetching", budget, true);
    auto all = stream.drive("everything in memory", kEverything, true);
    const auto waiting = stream.drive("budget, no prefetching", budget, false);
    for (int round = 1; round < kRounds; ++round) {
        streamed.keep_better(stream.drive("budget, prefetching, again", budget, true));
        all.keep_better(stream.drive("everything in memory, again", kEverything, true));
    }
    const auto of_all = [&](double scans_per_s) {
        return bench::Ratio{bench::ratio(scans_per_s, all.scans_per_s), "everything in memory"};
    };
    report.detail(
        {"streaming without prefetching", waiting.scans_per_s, "scans/s", of_all(waiting.scans_per_s)});
    report.detail({"growth of the resident set", 100 * streamed.drift, "%"});
    report.detail({"processor time of a scan while streaming", streamed.cpu_ms, "ms",
                   bench::Ratio{bench::ratio(streamed.cpu_ms, all.cpu_ms), "everything in memory"}});
    report.row({"streaming under a budget", streamed.scans_per_s, "scans/s", of_all(streamed.scans_per_s)});
    report.row({"loading hidden by prefetching", 100 * streamed.hidden, "%"});
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_stream",
         "A long drive through a city on disk under a small memory budget, against the same drive with "
         "everything "
         "in memory.",
         [&](bench::Flags& flags) {
             flags.number("--km", arguments.km, {0.1, 1000, "km"}, "length of the drive");
             flags.number("--resident", arguments.resident_mib, {1, 1e6, "MiB"}, "budget of tiles in memory");
             flags.count("--splats", arguments.splats, 100'000'000, "splats of the street that is repeated");
             flags.number("--rate", arguments.rate_hz, ranges::kScanRate_hz, "scans a second of driving");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
