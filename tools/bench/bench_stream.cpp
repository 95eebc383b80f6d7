/// A long drive under a small memory budget: what streaming costs.
///
/// A street of N splats (default 500 000, about 1200 a metre) in memory is repeated along the drive. Printed
/// are the throughput with everything of a piece resident, with the budget and prefetching, and without
/// prefetching; the share of loading that prefetching hides; and the growth of the resident set over the
/// second half of the drive.
#include "bench/bench_city.hpp"
#include "bench/bench_main.hpp"
#include "core/file.hpp"
#include "sim/drive/simulation.hpp"

#include <cstdio>
#include <fstream>
#include <string>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;

namespace {

constexpr double kSpeed_m_s = 10, kPiece_m = 416;

struct Arguments {
    double km = 10, resident_mib = 64, rate_hz = 2;
    std::uint64_t splats = 500'000;
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

/// Watches memory as scans go by.
class Watch : public ScanSink {
  public:
    explicit Watch(std::size_t scans) : half_(scans / 2), last_(scans - 1) {}
    void consume(const Scan&) override {}
    void conclude(const Scan& scan) override {
        if (scan.index == half_) at_half_ = resident_set_bytes();
        if (scan.index == last_) at_end_ = resident_set_bytes();
    }
    double drift() const {
        return bench::ratio(static_cast<double>(at_end_), static_cast<double>(at_half_)) - 1;
    }
    std::uint64_t at_end() const { return at_end_; }

  private:
    std::size_t half_, last_;
    std::uint64_t at_half_ = 1, at_end_ = 1;
};

Trajectory straight(double x0, double y0, double length_m) {
    std::vector<StampedPose> poses;
    for (double s = 0; s <= length_m; s += 5) poses.push_back({s / kSpeed_m_s, {{x0 + s, y0, 1.9}, {}}});
    return Trajectory(poses);
}

/// The drives of one run, under different budgets.
class StreamBench {
  public:
    StreamBench(const TileSource& city, const Arguments& arguments, bench::Report& report)
        : city_(city),
          rate_hz_(arguments.rate_hz),
          trajectory_(straight(city.tiles()[0].min.x + 10, 6861000, arguments.km * 1000)),
          report_(report) {}

    struct Outcome {
        double scans_per_s;
        double hidden;  ///< share of the loading that did not hold up the simulation
    };
    Outcome drive(const std::string& name, std::uint64_t budget_bytes, bool prefetch) {
        SimulationOptions options;
        options.schedule.rate_hz = rate_hz_;
        options.cache.budget_bytes = budget_bytes;
        options.cache.prefetch = prefetch;
        CancelToken cancel;
        Progress progress;
        Watch watch(scan_times(run_, trajectory_, options.schedule).size());
        const SimulationReport r =
            simulate({city_, *tracer_, run_, trajectory_, options}, watch, cancel, progress);
        bench::require_hits(r.hits, r.rays, "give the street more --splats");
        const Outcome outcome{bench::ratio(static_cast<double>(r.scans), r.seconds),
                              1 - bench::ratio(r.cache.wait_s, r.cache.load_s)};
        char note[200];
        std::snprintf(note, sizeof note,
                      "%llu tiles loaded, %.0f MiB of tiles at most, waited %.2f of %.2f s loading, RSS %.0f "
                      "MiB, drift %+.1f %%",
                      static_cast<unsigned long long>(r.cache.tiles_loaded),
                      static_cast<double>(r.cache.peak_bytes) / 1048576.0, r.cache.wait_s, r.cache.load_s,
                      static_cast<double>(watch.at_end()) / 1048576.0, 100 * watch.drift());
        report_.detail({name, outcome.scans_per_s, "scans/s", {}, true, note});
        return outcome;
    }

  private:
    const TileSource& city_;
    double rate_hz_;
    Trajectory trajectory_;
    bench::Report& report_;
    const std::unique_ptr<Tracer> tracer_ = make_embree_tracer();
    const SensorRun run_{Sensor::load("hdl-64e"), {}, 1};
};

void run(const Arguments& arguments, bench::Report& report) {
    const auto piece = bench::open_or_make_city("", arguments.splats);
    const LongCity city(*piece, static_cast<int>(arguments.km * 1000 / kPiece_m) + 1);
    report.text(bench::three_digits(arguments.km) + " km, " + std::to_string(city.tiles().size()) +
                " tiles, " + std::to_string(bench::count_splats(city)) + " splats; HDL-64E at " +
                bench::three_digits(arguments.rate_hz) + " scans a second of driving");
    StreamBench stream(city, arguments, report);
    // First: what a drive with more memory leaves behind would hide the growth of this one.
    const auto budget = static_cast<std::uint64_t>(arguments.resident_mib * 1048576.0);
    const auto streamed = stream.drive("budget, prefetching", budget, true);
    const auto all = stream.drive("everything in memory", std::uint64_t{64} << 30, true);
    const auto waiting = stream.drive("budget, no prefetching", budget, false);
    const auto of_all = [&](double scans_per_s) {
        return bench::Ratio{bench::ratio(scans_per_s, all.scans_per_s), "everything in memory"};
    };
    report.detail(
        {"streaming without prefetching", waiting.scans_per_s, "scans/s", of_all(waiting.scans_per_s)});
    report.row({"streaming under a budget", streamed.scans_per_s, "scans/s", of_all(streamed.scans_per_s)});
    report.row({"loading hidden by prefetching", 100 * streamed.hidden, "%"});
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_stream",
         "A long drive under a small memory budget, against the same drive with everything in memory.",
         [&](bench::Flags& flags) {
             flags.number("--km", arguments.km, {0.1, 1000, "km"}, "length of the drive");
             flags.number("--resident", arguments.resident_mib, {1, 1e6, "MiB"}, "budget of tiles in memory");
             flags.count("--splats", arguments.splats, 100'000'000, "splats of the street that is repeated");
             flags.number("--rate", arguments.rate_hz, ranges::kScanRate_hz, "scans a second of driving");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
