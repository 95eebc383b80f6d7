/// A long drive under a small memory budget: what streaming costs.
///   bench_stream [--km N] [--resident MIB] [--splats N] [--rate HZ]
///
/// A street of N splats (default 500 000, about 1200 a metre) in memory is repeated along the drive. Printed
/// are the throughput with everything of a piece resident, with the budget and prefetching, and without
/// prefetching; the share of loading that prefetching hides; and the growth of the resident set over the
/// second half of the drive.
#include "bench/bench_city.hpp"
#include "core/file.hpp"
#include "sim/drive/simulation.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;

namespace {

constexpr double kSpeed_m_s = 10, kPiece_m = 416;

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
    double drift() const { return static_cast<double>(at_end_) / static_cast<double>(at_half_) - 1; }
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

}  // namespace

int main(int argc, char** argv) {
    double km = 10, resident_mib = 64, scans_hz = 2;
    std::size_t splats = 500000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!std::strcmp(argv[i], "--km")) km = std::atof(argv[i + 1]);
        if (!std::strcmp(argv[i], "--resident")) resident_mib = std::atof(argv[i + 1]);
        if (!std::strcmp(argv[i], "--splats")) splats = std::strtoull(argv[i + 1], nullptr, 10);
        if (!std::strcmp(argv[i], "--rate")) scans_hz = std::atof(argv[i + 1]);
    }
    const auto piece = bench::open_or_make_city({}, splats);
    const int copies = static_cast<int>(km * 1000 / kPiece_m) + 1;
    const LongCity city(*piece, copies);
    const Vec3d begin = piece->tiles()[0].min;
    const auto tracer = make_embree_tracer();
    const SensorRun run{Sensor::load("hdl-64e"), {}, 1};
    const auto drive = [&](const char* name, double length_m, std::uint64_t budget, bool prefetch) {
        const Trajectory trajectory = straight(begin.x + 10, 6861000, length_m);
        SimulationOptions options;
        options.schedule.rate_hz = scans_hz;
        options.cache.budget_bytes = budget;
        options.cache.prefetch = prefetch;
        CancelToken cancel;
        Progress progress;
        Watch watch(scan_times(run, trajectory, options.schedule).size());
        const SimulationReport r =
            simulate({city, *tracer, run, trajectory, options}, watch, cancel, progress);
        const double speed = static_cast<double>(r.scans) / r.seconds;
        std::printf(
            "%-28s %6.1f scans/s, %5llu tiles loaded, %4.0f MiB of tiles at most, waited %.2f of %.2f s "
            "loading (%.0f %% hidden), RSS %.0f MiB, drift %+.1f %%\n",
            name, speed, static_cast<unsigned long long>(r.cache.tiles_loaded),
            static_cast<double>(r.cache.peak_bytes) / 1048576.0, r.cache.wait_s, r.cache.load_s,
            100 * (1 - r.cache.wait_s / r.cache.load_s), static_cast<double>(watch.at_end()) / 1048576.0,
            100 * watch.drift());
        std::fflush(stdout);
        return speed;
    };
    std::printf("%.1f km, %zu tiles, %llu splats; HDL-64 at %.0f scans a second of driving\n", km,
                city.tiles().size(), static_cast<unsigned long long>(bench::count_splats(city)), scans_hz);
    // First: what a drive with more memory leaves behind would hide the growth of this one.
    const auto budget = static_cast<std::uint64_t>(resident_mib * 1048576.0);
    const double streamed = drive("budget, prefetch", km * 1000, budget, true);
    const double all = drive("everything resident", km * 1000, std::uint64_t{64} << 30, true);
    const double waiting = drive("budget, no prefetch", km * 1000, budget, false);
    std::printf("streaming runs at %.2f of everything resident; without prefetch at %.2f\n", streamed / all,
                waiting / all);
}
