#include "core/error.hpp"
#include "tiling/toy_city.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace citysplat;

namespace {

/// The toy, slow enough to be killed in the middle, which writes a line to a log for every tile it makes.
class SlowToy final : public tiling::TileProcessor {
  public:
    SlowToy(const char* log, int pause_ms)
        : log_(::open(log, O_WRONLY | O_APPEND | O_CREAT, 0666)), pause_(pause_ms) {}
    ~SlowToy() override { ::close(log_); }

    tiling::Calibration calibrate(const tiling::RegionReader& reader, const CancelToken& cancel,
                                  Progress& progress) const override {
        return toy_.calibrate(reader, cancel, progress);
    }
    void set_calibration(const tiling::Calibration& calibration) override {
        toy_.set_calibration(calibration);
    }
    Hash128 parameters_key() const override { return toy_.parameters_key(); }
    std::int64_t initial_halo_steps() const override { return toy_.initial_halo_steps(); }
    std::size_t estimated_bytes(std::uint64_t points) const override { return toy_.estimated_bytes(points); }
    tiling::TileOutput process(tiling::Region region, const CancelToken& cancel) const override {
        if (::write(log_, "tile\n", 5) != 5) throw IoError("cannot write the log");
        std::this_thread::sleep_for(pause_);
        return toy_.process(std::move(region), cancel);
    }

  private:
    test::ToyProcessor toy_;
    int log_;
    std::chrono::milliseconds pause_;
};

}  // namespace

/// toy_worker CITY LOG PAUSE_MS PATIENCE_MS: works on the plan of a city with the toy processor, for tests
/// that kill it. After PATIENCE_MS others are taken for dead or slow.
int main(int argc, char** argv) {
    try {
        if (argc != 5) throw UsageError("toy_worker CITY LOG PAUSE_MS PATIENCE_MS");
        CancelToken cancel;
        Progress progress;
        tiling::WorkOptions options;
        options.heartbeat = std::chrono::milliseconds(100);
        options.dead_after = options.slow_after = std::chrono::milliseconds(std::atoi(argv[4]));
        const auto report = tiling::work_on_plan(
            argv[1],
            [&](const tiling::GenerationRow&) {
                return std::make_unique<SlowToy>(argv[2], std::atoi(argv[3]));
            },
            options, cancel, progress);
        return report.tiles_left == 0 ? 0 : 75;
    } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return static_cast<int>(e.kind());
    }
}
