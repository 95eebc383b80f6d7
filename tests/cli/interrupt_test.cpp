#include "small_city.hpp"
#include "stopped_program.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>

namespace test = citysplat::test;
using test::Outcome;
using test::TempDir;

namespace {

/// Commands over one drive, and how large it is.
class LongWork {
  public:
    struct Size {
        const char *length_m, *points_per_metre, *scans_hz;
    };
    struct Command {
        std::vector<std::string> arguments;
        std::string output;  ///< what it writes, taken away before each start; empty: nothing
    };

    explicit LongWork(const Size& size) : size_(size) {
        run(synth(drive_));
        run({"build", city_, drive_, "--trajectory", path_, "--classes", "synthetic"});
        run({"simulate", city_, "--sensor", "vlp-16", "--trajectory", path_, "--out", sequence_, "--rate",
             size.scans_hz});
        run({"simulate", city_, "--sensor", "vlp-16", "--trajectory", path_, "--out", clouds_, "--rate",
             size.scans_hz, "--format", "ply", "--frame", "world"});
    }

    std::vector<Command> commands() const {
        const std::string out = dir_ / "out";
        return {
            {{"info", sequence_}, ""},
            {{"info", drive_, "--trajectory", path_}, ""},
            {synth(out), out},
            {{"build", out, sequence_}, out},
            {{"build", out, drive_, "--trajectory", path_, "--classes", "synthetic"}, out},
            {{"build", out, drive_, "--trajectory", path_, "--method", "basic", "--tile-size", "16"}, out},
            {{"adjust", drive_, "--trajectory", path_, "--out", out}, out},
            {{"simulate", city_, "--sensor", "hdl-64e", "--trajectory", path_, "--out", out}, out},
            {{"learn-sensor", city_, "--scans", clouds_, "--trajectory", path_, "--sensor", "vlp-16", "--out",
              out},
             out},
            {{"calibrate", city_, "--scans", clouds_, "--trajectory", path_, "--sensor", "vlp-16", "--out",
              out},
             out},
            {{"compare", "--rays", clouds_, "--city", city_, "--trajectory", path_}, ""},
            {{"compare", clouds_, "--reference", drive_, "--truth", drive_, "--city", city_}, ""},
            {{"export", city_, "--format", "glb", "--out", out}, out},
            {{"export", city_, "--removed", "--format", "ply", "--out", out}, out},
            {{"verify", city_, "--deep"}, ""},
            {{"pack", city_, out}, out},
        };
    }

  private:
    std::vector<std::string> synth(const std::string& out) const {
        return {"synth", out, "--length", size_.length_m, "--points-per-metre", size_.points_per_metre};
    }
    static void run(std::vector<std::string> arguments) {
        arguments.push_back("-q");
        const Outcome outcome = test::citysplat(arguments);
        INFO(arguments[0] << ": " << outcome.err);
        REQUIRE(outcome.exit_code == 0);
    }

    Size size_;
    TempDir dir_;
    std::string drive_ = dir_ / "drive", path_ = drive_ + "/trajectory.tum", city_ = dir_ / "city",
                sequence_ = dir_ / "sequence", clouds_ = dir_ / "clouds";
};

test::Answer start(const LongWork::Command& command, int signal, double after_s) {
    if (!command.output.empty()) std::filesystem::remove_all(command.output);
    return test::answer_of_citysplat(command.arguments, signal,
                                     std::chrono::milliseconds(static_cast<int>(1000 * after_s)));
}

/// Sends signals at so many moments, evenly over the time that the command takes.
void interrupt(const LongWork::Command& command, int moments) {
    constexpr double kMost_s = 2;
    const char* const kLate = "did not stop in time";
    std::string name;
    for (const std::string& word : command.arguments) name += word + " ";
    INFO(name);
    const test::Answer whole = start(command, 0, 0);
    INFO(whole.outcome.err);
    REQUIRE(whole.outcome.exit_code == 0);
    for (int k = 0; k < moments; ++k) {
        const int signal = k % 2 == 0 ? SIGINT : SIGTERM;
        const double after_s = whole.seconds * (k + 0.5) / moments;
        test::Answer stopped;
        // On a busy machine a good answer may come late, but not again and again.
        for (int attempt = 0; attempt < 3; ++attempt) {
            stopped = start(command, signal, after_s);
            if (stopped.seconds < kMost_s && stopped.outcome.err.find(kLate) == std::string::npos) break;
        }
        INFO("after " << after_s << " of " << whole.seconds << " s: " << stopped.outcome.err);
        // Before the program is ready to answer, a signal ends it as any program.
        const int code = stopped.outcome.exit_code;
        CHECK((code == 130 || code == 0 || code == 128 + signal));
        CHECK(stopped.seconds < kMost_s);
        CHECK_THAT(stopped.outcome.err, !Catch::Contains(kLate));
    }
}

}  // namespace

TEST_CASE("Ctrl-C and SIGTERM are answered within two seconds by every verb that takes long", "[slow]") {
    const LongWork work({"20", "8000", "2"});
    for (const LongWork::Command& command : work.commands()) interrupt(command, 2);
}

TEST_CASE("Ctrl-C is answered within two seconds at many moments of long work", "[slow]") {
    const LongWork work({"150", "20000", "10"});
    for (const LongWork::Command& command : work.commands()) interrupt(command, 12);
}

TEST_CASE("Ctrl-C stops a build with exit code 130 and leaves a directory the next build completes") {
    const TempDir dir;
    const std::string drive = dir / "drive", city = dir / "city";
    REQUIRE(
        test::citysplat({"synth", drive, "--length", "60", "--points-per-metre", "10000", "-q"}).exit_code ==
        0);
    const std::vector<std::string> build{"build", city, drive, "--classes", "synthetic", "-q"};

    const Outcome stopped = test::stopped_citysplat(build, {SIGINT, city + "/catalog.sqlite", city});
    INFO(stopped.err);
    CHECK(stopped.exit_code == 130);
    CHECK(test::citysplat(build).exit_code == 0);
    CHECK(test::citysplat({"verify", city, "--deep", "-q"}).exit_code == 0);
}

TEST_CASE("Ctrl-C stops a long survey with exit code 130 within seconds, and the next one takes its place") {
    const TempDir dir;
    const std::string drive = dir / "drive";
    const Outcome stopped = test::stopped_citysplat({"synth", drive, "--length", "100000", "-q"},
                                                    {SIGINT, drive + "/cloud_000.las", drive});
    CHECK(stopped.exit_code == 130);
    CHECK_THAT(stopped.err, Catch::Contains("interrupted"));
    CHECK(test::citysplat({"synth", drive, "--length", "5", "--points-per-metre", "100", "-q"}).exit_code ==
          0);
    CHECK_FALSE(std::filesystem::exists(drive + "/unfinished_drive.txt"));
}

TEST_CASE("Ctrl-C and SIGTERM stop a simulation with exit code 130, and the next one completes it") {
    const test::SmallCity c;
    const std::string scans = c.dir / "scans";
    const std::vector<std::string> simulate{"simulate",   c.city,  "--sensor", "hdl-64e", "--trajectory",
                                            c.trajectory, "--out", scans,      "--rate",  "100"};
    for (const int signal : {SIGINT, SIGTERM}) {
        const Outcome stopped =
            test::stopped_citysplat(simulate, {signal, scans + "/velodyne/000000.bin", scans});
        INFO(stopped.err);
        CHECK(stopped.exit_code == 130);
        CHECK(stopped.out.empty());
    }
    CHECK(test::citysplat(simulate).exit_code == 0);
}
