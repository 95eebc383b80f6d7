/// How well `adjust` finds a trajectory again that was bent on purpose: simulated scanners drive through the
/// synthetic city, their poses get the errors that navigation systems have, and what is left after the
/// adjustment is held against the truth.
#include "adjust/adjust.hpp"
#include "adjust/block_solver.hpp"
#include "bench/bench_clock.hpp"
#include "bench/bench_main.hpp"
#include "bench/poses/street.hpp"
#include "core/bytes.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "io/input/adjusted_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

using namespace citysplat;
using bench::Case;
using bench::Errors;
using bench::Traffic;

namespace {

constexpr double kDegree = exact::kRadPerDegree;

/// What is left of the errors after one shift and turn of everything, chosen for the least sum of squares of
/// position errors and of turns on a lever of 10 m.
struct Residual {
    double rms_m = 0, most_m = 0, along_m = 0, across_m = 0, up_m = 0, turn_deg = 0;
};
struct PoseError {
    Vec3d at, shift, turn;
    Quaternion heading;
};
Residual residual_of(const std::vector<PoseError>& errors) {
    constexpr double kLever_m = 10;
    Vec3d centre{0, 0, 0};
    for (const PoseError& e : errors) centre = centre + (1 / static_cast<double>(errors.size())) * e.at;
    adjust::BlockEquations equations(1);
    adjust::Block& normal = equations.at(0, 0);
    adjust::BlockVector& right = equations.row(0).right;
    for (std::size_t u = 0; u < adjust::kUnknowns; ++u) normal[(adjust::kUnknowns + 1) * u] = 1e-9;
    /// Adds (gradient · datum − value)².
    const auto add = [&](const adjust::BlockVector& gradient, double value) {
        for (std::size_t a = 0; a < adjust::kUnknowns; ++a) {
            right[a] += gradient[a] * value;
            for (std::size_t b = 0; b < adjust::kUnknowns; ++b)
                normal[adjust::kUnknowns * a + b] += gradient[a] * gradient[b];
        }
    };
    for (const PoseError& e : errors) {
        const Vec3d r = e.at - centre;
        add({1, 0, 0, 0, r.z, -r.y}, e.shift.x);
        add({0, 1, 0, -r.z, 0, r.x}, e.shift.y);
        add({0, 0, 1, r.y, -r.x, 0}, e.shift.z);
        add({0, 0, 0, kLever_m, 0, 0}, kLever_m * e.turn.x);
        add({0, 0, 0, 0, kLever_m, 0}, kLever_m * e.turn.y);
        add({0, 0, 0, 0, 0, kLever_m}, kLever_m * e.turn.z);
    }
    const adjust::BlockVector datum = equations.solve(1 << 20, CancelToken())[0];
    const Vec3d shift{datum[0], datum[1], datum[2]}, turn{datum[3], datum[4], datum[5]};
    Residual result;
    const double each = 1 / static_cast<double>(errors.size());
    for (const PoseError& e : errors) {
        const Vec3d left = e.shift - shift - cross(turn, e.at - centre);
        const Vec3d body = rotate(conjugate(e.heading), left), turned = e.turn - turn;
        result.rms_m += each * dot(left, left);
        result.along_m += each * body.x * body.x, result.across_m += each * body.y * body.y;
        result.up_m += each * body.z * body.z;
        result.turn_deg += each * dot(turned, turned);
        result.most_m = std::max(result.most_m, length(left));
    }
    for (double* v : {&result.rms_m, &result.along_m, &result.across_m, &result.up_m}) *v = std::sqrt(*v);
    result.turn_deg = std::sqrt(result.turn_deg) / kDegree;
    return result;
}

void add_errors(std::vector<PoseError>& errors, const Trajectory& is, const Trajectory& should) {
    for (std::size_t i = 0; i < is.poses().size(); ++i) {
        const Pose &a = is.poses()[i].world_from_body, &b = should.poses()[i].world_from_body;
        Quaternion q = a.rotation * conjugate(b.rotation);
        if (q.w < 0) q = {-q.x, -q.y, -q.z, -q.w};
        errors.push_back(
            {b.translation, a.translation - b.translation, {2 * q.x, 2 * q.y, 2 * q.z}, b.rotation});
    }
}

/// Processor time of this thread.
std::int64_t thread_cpu_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// A cloud that is opened several times. Adds what it takes to make the points to `making_ns`.
class SharedFile final : public PointFile {
  public:
    SharedFile(std::shared_ptr<const PointFile> file, std::atomic<std::int64_t>& making_ns)
        : file_(std::move(file)), making_ns_(making_ns) {}
    const PointFileInfo& info() const override { return file_->info(); }
    std::size_t block_count() const override { return file_->block_count(); }
    void read_block(std::size_t index, PointBatch& out) const override {
        const std::int64_t begin_ns = thread_cpu_ns();
        file_->read_block(index, out);
        making_ns_ += thread_cpu_ns() - begin_ns;
    }

  private:
    std::shared_ptr<const PointFile> file_;
    std::atomic<std::int64_t>& making_ns_;
};

struct Args {
    std::vector<std::string> only;
    double knots_s = 0.1;
    bool stages = false;
    std::uint64_t memory_mib = 2048;
};

void run_case(const Case& c, const Args& args, bench::Report& out) {
    const bench::Street street(c);
    std::vector<adjust::AdjustDrive> drives;
    std::vector<Trajectory> truths;
    std::vector<PoseError> before, after;
    std::atomic<std::int64_t> making_ns{0};
    for (int d = 0; d < c.drives; ++d) {
        const double span = (c.end_s - c.begin_s) / c.drives, begin = c.begin_s + d * span,
                     end = begin + span;
        truths.push_back(street.truth(begin, end, c.poses_hz));
        std::vector<StampedPose> poses(truths.back().poses().begin(), truths.back().poses().end());
        for (StampedPose& p : poses)
            p.world_from_body =
                bench::believed(p.world_from_body, c, p.time_s - synth::Drive::kBegin_s, 0.5 + 2.0 * d);
        const Trajectory given(std::move(poses));
        add_errors(before, given, truths.back());
        auto adjustment = std::make_shared<Adjustment>();
        adjustment->given = street.truth(begin, end + 0.1, synth::Drive::kPosesPerSecond);
        adjustment->adjusted = given;
        ReadOptions options;
        options.adjustment = adjustment;
        const std::shared_ptr<const PointFile> seen =
            street.see(begin, given.end_s() - synth::Drive::kBegin_s);
        drives.push_back({"drive", given, {[seen, options, &making_ns] {
                              return io::with_adjusted_poses(std::make_unique<SharedFile>(seen, making_ns),
                                                             options, "drive");
                          }}});
    }
    adjust::AdjustOptions options;
    options.knots_s = args.knots_s;
    options.memory_bytes = args.memory_mib << 20;
    options.scratch = std::filesystem::temp_directory_path();
    Progress progress(args.stages ? ProgressStyle::plain : ProgressStyle::none);
    adjust::AdjustReport r;
    const bench::Elapsed took =
        bench::measure([&] { r = adjust::adjust(drives, options, CancelToken(), progress); });
    const double making_s = 1e-9 * static_cast<double>(making_ns);
    for (std::size_t d = 0; d < drives.size(); ++d) add_errors(after, r.drives[d].adjusted, truths[d]);
    const Residual b = residual_of(before), a = residual_of(after);
    double length = 0;
    for (const Trajectory& t : truths) length += t.length_m();
    std::array<char, 512> line{};
    std::snprintf(
        line.data(), line.size(),
        "%-16s %4.0f m %5.2f M | %5.1f cm %5.2f deg -> rms %5.2f most %5.2f (along %5.2f across %5.2f up "
        "%5.2f) "
        "cm %6.3f deg | thick %5.1f -> %5.2f %%, p50 %5.1f -> %4.1f mm | stretch %5.2f %% | %5.1f s CPU, "
        "points "
        "made in %.1f s, wall %.1f s | peak %s",
        c.name.c_str(), length, static_cast<double>(r.points.used) / 1e6, 100 * b.rms_m, b.turn_deg,
        100 * a.rms_m, 100 * a.most_m, 100 * a.along_m, 100 * a.across_m, 100 * a.up_m, a.turn_deg,
        100 * r.before.share_thick(), 100 * r.after.share_thick(), 1000 * r.before.quantile_m(0.5),
        1000 * r.after.quantile_m(0.5), 100 * r.drives[0].stretch, took.cpu_s - making_s, making_s,
        took.wall_s, format_bytes(peak_rss_bytes()).c_str());
    out.text(line.data() + (r.refusal ? "\n    refused: " + *r.refusal : ""));
}

std::vector<Case> cases() {
    return {
        {.name = "kitti", .begin_s = 1, .end_s = 6.2, .errors = Errors::oxts, .every_second = true},
        {.name = "kitti-good", .begin_s = 1, .end_s = 6.2, .errors = Errors::none, .every_second = true},
        {.name = "kitti-bus",
         .begin_s = 1,
         .end_s = 6.2,
         .errors = Errors::oxts,
         .every_second = true,
         .traffic = Traffic::buses},
        {.name = "kitti-bus-good",
         .begin_s = 1,
         .end_s = 6.2,
         .errors = Errors::none,
         .every_second = true,
         .traffic = Traffic::buses},
        {.name = "kitti-ramp", .begin_s = 1, .end_s = 6.2, .errors = Errors::ramp, .every_second = true},
        {.name = "nuscenes",
         .beams = 32,
         .hz = 20,
         .begin_s = 1,
         .end_s = 3.55,
         .errors = Errors::flat,
         .every_second = true,
         .poses_hz = 20},
        {.name = "nuscenes-good",
         .beams = 32,
         .hz = 20,
         .begin_s = 1,
         .end_s = 3.55,
         .errors = Errors::none,
         .every_second = true,
         .poses_hz = 20},
        {.name = "kitti-hills", .end_s = 6.2, .errors = Errors::oxts, .every_second = true, .hills_m = 1},
        {.name = "kitti-turn", .begin_s = 60.5, .end_s = 65.7, .errors = Errors::oxts, .every_second = true},
        {.name = "kitti-u-turn", .begin_s = 11, .end_s = 16.2, .errors = Errors::oxts, .every_second = true},
        {.name = "kitti-stands",
         .length_m = 150,
         .begin_s = 8.5,
         .end_s = 12.5,
         .errors = Errors::wandering,
         .every_second = true},
        {.name = "kitti-stops",
         .length_m = 150,
         .begin_s = 5,
         .end_s = 10.2,
         .errors = Errors::wandering,
         .every_second = true},
        {.name = "kitti-queue",
         .begin_s = 1,
         .end_s = 6.2,
         .errors = Errors::oxts,
         .every_second = true,
         .traffic = Traffic::queue},
        {.name = "kitti-queue-good",
         .begin_s = 1,
         .end_s = 6.2,
         .errors = Errors::none,
         .every_second = true,
         .traffic = Traffic::queue},
        {.name = "nuscenes-hills",
         .beams = 32,
         .hz = 20,
         .begin_s = 36,
         .end_s = 41.2,
         .errors = Errors::flat,
         .every_second = true,
         .poses_hz = 20,
         .hills_m = 1},
        {.name = "nuscenes-turn",
         .beams = 32,
         .hz = 20,
         .begin_s = 60.5,
         .end_s = 65.7,
         .errors = Errors::flat,
         .every_second = true,
         .poses_hz = 20,
         .hills_m = 1},
        {.name = "nuscenes-queue",
         .beams = 32,
         .hz = 20,
         .begin_s = 36,
         .end_s = 41.2,
         .errors = Errors::flat,
         .every_second = true,
         .poses_hz = 20,
         .traffic = Traffic::queue,
         .hills_m = 1},
        {.name = "open-60m", .columns = 400, .begin_s = 0, .end_s = 8, .errors = Errors::slow},
        {.name = "out-and-back", .columns = 400, .begin_s = 0, .end_s = 30, .errors = Errors::slow},
        {.name = "open-100m", .seed = 1, .columns = 400, .begin_s = 35, .end_s = 50, .errors = Errors::slow},
        {.name = "open-30s", .seed = 1, .columns = 400, .begin_s = 35, .end_s = 65, .errors = Errors::slow},
        {.name = "open-30s-good",
         .seed = 1,
         .columns = 400,
         .begin_s = 35,
         .end_s = 65,
         .errors = Errors::none},
        {.name = "open-30s-bus",
         .seed = 1,
         .columns = 400,
         .begin_s = 35,
         .end_s = 65,
         .errors = Errors::slow,
         .traffic = Traffic::buses},
        {.name = "open-60s", .seed = 1, .columns = 400, .begin_s = 35, .end_s = 95, .errors = Errors::slow},
        {.name = "two-drives",
         .seed = 1,
         .columns = 400,
         .begin_s = 0,
         .end_s = 30,
         .errors = Errors::slow,
         .drives = 2},
        {.name = "stretched-5%",
         .begin_s = 1,
         .end_s = 6.2,
         .errors = Errors::none,
         .every_second = true,
         .stretch = 1.05},
        {.name = "stretched-long",
         .seed = 1,
         .columns = 400,
         .begin_s = 35,
         .end_s = 50,
         .errors = Errors::none,
         .stretch = 1.05},
        {.name = "stretched-1%",
         .begin_s = 1,
         .end_s = 6.2,
         .errors = Errors::none,
         .every_second = true,
         .stretch = 1.01},
        {.name = "1-km",
         .length_m = 10'100,
         .beams = 32,
         .columns = 90,
         .end_s = 134,
         .errors = Errors::slow,
         .in_memory = false},
        {.name = "1-km-dense",
         .length_m = 10'100,
         .beams = 32,
         .columns = 360,
         .end_s = 134,
         .errors = Errors::slow,
         .in_memory = false},
        {.name = "1-km-good",
         .length_m = 10'100,
         .beams = 32,
         .columns = 90,
         .end_s = 134,
         .errors = Errors::none,
         .in_memory = false},
        {.name = "2.5-km",
         .length_m = 10'100,
         .beams = 32,
         .columns = 90,
         .end_s = 335,
         .errors = Errors::slow,
         .in_memory = false},
        {.name = "5-km",
         .length_m = 10'100,
         .beams = 32,
         .columns = 90,
         .end_s = 670,
         .errors = Errors::slow,
         .in_memory = false},
        {.name = "10-km",
         .length_m = 10'100,
         .beams = 32,
         .columns = 90,
         .end_s = 1'340,
         .errors = Errors::slow,
         .in_memory = false},
        {.name = "10-km-two-days",
         .length_m = 10'100,
         .beams = 32,
         .columns = 90,
         .end_s = 1'340,
         .errors = Errors::slow,
         .drives = 2,
         .in_memory = false},
    };
}

}  // namespace

int main(int argc, char** argv) {
    Args args;
    return bench::run_bench(
        {"bench_adjust", "What adjust leaves of errors that are known.",
         [&](bench::Flags& flags) {
             flags.texts("--only", args.only, "names of cases");
             flags.count("--memory", args.memory_mib, 1 << 20, "MiB that adjust may use");
             flags.flag("--stages", args.stages, "says how far each stage is");
             flags.number("--knots", args.knots_s, {0.01, 60, "s"}, "least time between knots");
         },
         [&](bench::Report& out) {
             for (const Case& c : cases())
                 if (args.only.empty() ||
                     std::find(args.only.begin(), args.only.end(), c.name) != args.only.end())
                     run_case(c, args, out);
         }},
        argc, argv);
}
