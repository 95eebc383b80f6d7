#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/moving/made_drive.hpp"
#include "citysplat/build.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "io/input/input_list.hpp"
#include "io/tracks/track_file.hpp"
#include "io/tracks/track_writer.hpp"
#include "objects/bank_builder.hpp"
#include "sim/recorded/ray_caster.hpp"
#include "sim/recorded/recorded_drive.hpp"
#include "sim/traffic/scan_parts.hpp"
#include "tiling/store/city_reader.hpp"
#include "trace/resident_city.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace citysplat;

namespace {

struct Arguments {
    std::string folder, tracks, classes = "none", city;
    bool untracked = false;
};

constexpr double kMoving_m_s = 1, kFast_m_s = 8;
constexpr std::size_t kLeastReturns = 50;
constexpr double kNearest_m = 5, kFarthest_m = 60;
/// An object whose returns pause for so long within a scan is cut by the seam of the sweep.
constexpr double kSeamPause_s = 0.05;
/// Where labels do not say: so much above the bottom of its box a return is the object's and not the road's.
constexpr double kAboveGround_m = 0.15;
/// The boxes by which returns are told to be an object's are grown by this.
constexpr double kMargin_m = 0.1;
/// What the city returns within this of a real return stands where the object was.
constexpr double kSamePlace_m = 0.5;

/// Where an object is taken to be when a ray is cast.
enum class Poses { aligned, boxes, frozen };
constexpr std::array<const char*, 3> kPoseNames{"aligned tracks of the even scans, at the ray's own time",
                                                "boxes of all scans, at the ray's own time",
                                                "aligned tracks, frozen at the begin of the scan"};

/// One object of the drive.
struct Subject {
    Track truth;                           ///< boxes of all scans, at the times at which they hold
    Track aligned;                         ///< from the even scans alone
    std::optional<std::uint32_t> shape{};  ///< nothing: the bank does not have it

    double speed_at(double time_s) const {
        return length(truth.pose_at(time_s + 0.05).translation - truth.pose_at(time_s - 0.05).translation) /
               0.1;
    }
};

/// What the judged scans say about objects. Every real return is met, or lost in one of five ways.
struct Tally {
    std::size_t objects = 0, real = 0, met = 0, simulated = 0;
    std::size_t unknown = 0;        ///< the bank does not have the object
    std::size_t city_in_front = 0;  ///< the city returns first,
    std::size_t city_in_place = 0;  ///< … where the object was
    std::size_t other_object = 0;   ///< another object does
    std::size_t missed = 0;         ///< the ray goes by
    std::vector<double> errors_m;
    std::vector<double> late_errors_m;  ///< of objects cut by the seam: those of the returns after the pause

    void add(const Tally& more) {
        objects += more.objects, real += more.real, met += more.met, simulated += more.simulated;
        unknown += more.unknown, city_in_front += more.city_in_front, city_in_place += more.city_in_place;
        other_object += more.other_object, missed += more.missed;
        errors_m.insert(errors_m.end(), more.errors_m.begin(), more.errors_m.end());
        late_errors_m.insert(late_errors_m.end(), more.late_errors_m.begin(), more.late_errors_m.end());
    }
};

double quantile(std::vector<double>& errors_m, double share) {
    if (errors_m.empty()) throw InputError("no return met the object it was measured on");
    const auto at =
        errors_m.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(errors_m.size() - 1));
    std::nth_element(errors_m.begin(), at, errors_m.end());
    return *at;
}

constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

/// All returns of a scan on one object.
struct Look {
    Tally tally;
    std::vector<double> times_s, ranges_m;
    std::vector<double> met_times_s;  ///< of tally.errors_m
};

/// The lower ends of the classes of speed by which errors are shown, in m/s.
constexpr std::array<double, 6> kSpeeds_m_s{1, 2, 4, 8, 12, 16};
using BySpeed = std::array<Tally, kSpeeds_m_s.size()>;
Tally& of_speed(BySpeed& classes, double speed_m_s) {
    const auto above = std::upper_bound(kSpeeds_m_s.begin(), kSpeeds_m_s.end(), speed_m_s);
    return classes[static_cast<std::size_t>(above - kSpeeds_m_s.begin()) - 1];
}

/// The shapes of the bank; each tracer scene wants its own.
using LoadShapes = std::function<std::vector<sim::Shape>()>;

class Judge {
  public:
    Judge(const ClassMap& classes, std::vector<Subject> subjects, const LoadShapes& shapes,
          const TileSource& city)
        : classes_(classes),
          subjects_(std::move(subjects)),
          tracer_(trace::make_group_tracer()),
          city_(city, *tracer_, {}),
          aligned_(shapes(), actors([](const Subject& s) { return s.aligned; })),
          boxes_(shapes(), actors([](const Subject& s) { return s.truth; })),
          ready_aligned_(aligned_, *tracer_),
          ready_boxes_(boxes_, *tracer_) {}

    void judge(const RecordedScan& scan, const CancelToken& cancel) {
        const auto rays = std::span(scan.rays).first(scan.returns);
        sim::Sweep sweep{rays.front().time_s, 0};
        sim::ScanReach reach{kEmptyBox, static_cast<double>(trace::kMaxRange_m)};
        double end_s = sweep.begin_s;
        for (const RecordedRay& r : rays) {
            sweep.begin_s = std::min(sweep.begin_s, r.time_s);
            end_s = std::max(end_s, r.time_s);
            reach.path.grow(r.origin);
        }
        sweep.seconds = end_s - sweep.begin_s;
        const std::vector<std::size_t> owners = owners_of(rays);
        const Judged judged{rays, owners, sweep.begin_s};
        const sim::ScanParts aligned = ready_aligned_.during(sweep, reach);
        judge_with(aligned.parts(), Poses::aligned, judged, cancel);
        judge_with(ready_boxes_.during(sweep, reach).parts(), Poses::boxes, judged, cancel);
        // Times of parts begin with the scan.
        std::vector<trace::Part> frozen(aligned.parts().begin(), aligned.parts().end());
        std::vector<trace::PoseKey> keys(frozen.size());
        for (std::size_t i = 0; i < frozen.size(); ++i) {
            keys[i] = trace::pose_at(frozen[i].motion, 0);
            frozen[i].motion = {&keys[i], nullptr, 0};
        }
        judge_with(frozen, Poses::frozen, judged, cancel);
    }

    std::array<Tally, 3> all{}, seam{}, fast_seam{};
    std::array<BySpeed, 3> by_speed{}, seam_by_speed{};
    std::map<std::string, Tally> by_class;  ///< with aligned tracks
    double fastest_m_s = 0, fastest_seam_m_s = 0;

  private:
    /// The rays of a scan and whose returns they are.
    struct Judged {
        std::span<const RecordedRay> rays;
        std::span<const std::size_t> owners;
        double begin_s;
    };

    /// The subjects that are in the bank, moving along track(subject). Their instance is their number plus
    /// one.
    template <class TrackOf>
    std::vector<sim::Actor> actors(const TrackOf& track) const {
        std::vector<sim::Actor> result;
        for (std::size_t s = 0; s < subjects_.size(); ++s) {
            if (!subjects_[s].shape) continue;
            sim::Actor actor;
            actor.name = subjects_[s].truth.name;
            actor.shape = *subjects_[s].shape;
            actor.track = track(subjects_[s]);
            actor.instance = static_cast<std::uint16_t>(s + 1);
            result.push_back(std::move(actor));
        }
        return result;
    }

    /// Whose a return is, by the boxes of the scan.
    std::vector<std::size_t> owners_of(std::span<const RecordedRay> rays) const {
        std::vector<std::size_t> owners(rays.size(), kNobody);
        parallel_ranges(rays.size(), 2048, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const Vec3d p = rays[i].origin + rays[i].direction * rays[i].range_m;
                const auto known = classes_.classes().find(rays[i].label);
                const bool labelled = rays[i].label != 0 && known != classes_.classes().end();
                if (labelled && known->second.group == SplatGroup::ground) continue;
                for (std::size_t s = 0; s < subjects_.size(); ++s) {
                    const Track& t = subjects_[s].truth;
                    const double time_s = rays[i].time_s;
                    if (!t.exists(time_s)) continue;
                    const Vec3d q = inverse(t.pose_at(time_s)).apply(p);
                    if (!in_box(t.size, q, kMargin_m)) continue;
                    if (!labelled && q.z < kAboveGround_m) continue;
                    owners[i] = s;
                    break;
                }
            }
        });
        return owners;
    }

    void judge_with(std::span<const trace::Part> parts, Poses poses, const Judged& judged,
                    const CancelToken& cancel) {
        sim::CastOptions cast;
        cast.parts = parts;
        cast.begin_s = judged.begin_s;
        const std::vector<sim::Return> returns = sim::cast_again(judged.rays, cast, city_, cancel);
        std::vector<Look> looks(subjects_.size());
        for (std::size_t i = 0; i < returns.size(); ++i) {
            const sim::Return& simulated = returns[i];
            const std::size_t by = simulated.instance == 0 ? kNobody : simulated.instance - std::size_t{1};
            if (by != kNobody) ++looks[by].tally.simulated;
            if (judged.owners[i] == kNobody) continue;
            Look& look = looks[judged.owners[i]];
            look.times_s.push_back(judged.rays[i].time_s);
            look.ranges_m.push_back(judged.rays[i].range_m);
            if (count(judged.rays[i], simulated, judged.owners[i], look.tally))
                look.met_times_s.push_back(judged.rays[i].time_s);
        }
        for (std::size_t s = 0; s < subjects_.size(); ++s) add(looks[s], subjects_[s], poses);
    }

    /// True when the ray met the object that it was measured on.
    bool count(const RecordedRay& real, const sim::Return& simulated, std::size_t owner, Tally& t) const {
        ++t.real;
        const double off_m = static_cast<double>(simulated.range_m) - real.range_m;
        const bool returned = simulated.status == sim::RayStatus::hit;
        if (simulated.instance == owner + 1) {
            ++t.met;
            t.errors_m.push_back(std::fabs(off_m));
            return true;
        }
        if (!subjects_[owner].shape) {
            ++t.unknown;
        } else if (!returned || off_m > kSamePlace_m) {
            ++t.missed;
        } else if (simulated.instance != 0) {
            ++t.other_object;
        } else if (off_m < -kSamePlace_m) {
            ++t.city_in_front;
        } else {
            ++t.city_in_place;
        }
        return false;
    }

    void add(Look& look, const Subject& subject, Poses poses) {
        if (look.tally.real < kLeastReturns) return;
        std::sort(look.times_s.begin(), look.times_s.end());
        std::sort(look.ranges_m.begin(), look.ranges_m.end());
        const double middle_m = look.ranges_m[look.ranges_m.size() / 2];
        const double speed = subject.speed_at(look.times_s[look.times_s.size() / 2]);
        if (speed < kMoving_m_s || middle_m < kNearest_m || middle_m > kFarthest_m) return;
        look.tally.objects = 1;
        const auto variant = static_cast<std::size_t>(poses);
        const auto pause = std::adjacent_find(look.times_s.begin(), look.times_s.end(),
                                              [](double a, double b) { return b - a > kSeamPause_s; });
        const bool cut = pause != look.times_s.end();
        for (std::size_t k = 0; cut && k < look.met_times_s.size(); ++k)
            if (look.met_times_s[k] > *pause) look.tally.late_errors_m.push_back(look.tally.errors_m[k]);
        all[variant].add(look.tally);
        of_speed(by_speed[variant], speed).add(look.tally);
        if (poses == Poses::aligned) by_class[subject.truth.class_name].add(look.tally);
        fastest_m_s = std::max(fastest_m_s, speed);
        if (!cut) return;
        seam[variant].add(look.tally);
        of_speed(seam_by_speed[variant], speed).add(look.tally);
        if (speed >= kFast_m_s) fast_seam[variant].add(look.tally);
        fastest_seam_m_s = std::max(fastest_seam_m_s, speed);
    }

    const ClassMap& classes_;
    std::vector<Subject> subjects_;
    std::unique_ptr<trace::Tracer> tracer_;
    trace::ResidentCity city_;
    sim::Traffic aligned_, boxes_;
    sim::ReadyTraffic ready_aligned_, ready_boxes_;
};

/// The times of boxes, each once: there is one for each scan.
std::vector<double> stamps_of(std::span<const Track> tracks) {
    std::set<double> stamps;
    for (const Track& t : tracks)
        for (const StampedPose& p : t.path.poses()) stamps.insert(p.time_s);
    return {stamps.begin(), stamps.end()};
}

/// Only the boxes of even scans.
std::vector<Track> even_tracks(std::span<const Track> tracks, std::span<const double> stamps) {
    std::vector<Track> result;
    for (const Track& t : tracks) {
        std::vector<StampedPose> poses;
        for (const StampedPose& p : t.path.poses())
            if ((std::lower_bound(stamps.begin(), stamps.end(), p.time_s) - stamps.begin()) % 2 == 0)
                poses.push_back(p);
        if (poses.empty()) poses.push_back(t.path.poses().front());
        Track even = Track::along(t.name, Trajectory(std::move(poses), t.name));
        even.class_name = t.class_name;
        even.size = t.size;
        result.push_back(std::move(even));
    }
    return result;
}

void print(bench::Report& report, const std::string& what, Tally& t) {
    const auto share = [](std::size_t part, std::size_t whole) {
        return 100 * bench::ratio(static_cast<double>(part), static_cast<double>(whole));
    };
    report.detail({what + ": objects", static_cast<double>(t.objects), ""});
    if (t.objects == 0) return;
    report.detail({what + ": real returns", static_cast<double>(t.real), ""});
    report.detail({what + ": recall", share(t.met, t.real), "%"});
    report.detail({what + ": lost, not in the bank", share(t.unknown, t.real), "%"});
    report.detail({what + ": lost, city in front of it", share(t.city_in_front, t.real), "%"});
    report.detail({what + ": lost, city in its place", share(t.city_in_place, t.real), "%"});
    report.detail({what + ": lost, another object", share(t.other_object, t.real), "%"});
    report.detail({what + ": lost, passed by", share(t.missed, t.real), "%"});
    if (t.met == 0) return;
    report.detail({what + ": precision", share(t.met, t.simulated), "%"});
    report.detail({what + ": range error, median", 100 * quantile(t.errors_m, 0.5), "cm"});
    report.detail({what + ": range error, 90 %", 100 * quantile(t.errors_m, 0.9), "cm"});
    if (t.late_errors_m.empty()) return;
    report.detail(
        {what + ": range error after the seam, median", 100 * quantile(t.late_errors_m, 0.5), "cm"});
}

/// Recall and error at the ray's own time and frozen, a row for each class of speed that there is.
void print_by_speed(bench::Report& report, const std::string& what, std::array<BySpeed, 3>& tallies,
                    std::vector<double> Tally::*errors) {
    constexpr std::array<std::pair<Poses, const char*>, 2> kWays{
        {{Poses::aligned, ", own time"}, {Poses::frozen, ", frozen"}}};
    for (std::size_t k = 0; k < kSpeeds_m_s.size(); ++k)
        for (const auto& [poses, way] : kWays) {
            Tally& t = tallies[static_cast<std::size_t>(poses)][k];
            if ((t.*errors).empty()) continue;
            report.detail({what + ", from " + bench::three_digits(kSpeeds_m_s[k]) + " m/s" + way,
                           100 * quantile(t.*errors, 0.5), "cm", std::nullopt, true,
                           "of " + std::to_string(t.objects) + " looks, " +
                               bench::three_digits(100 * bench::ratio(static_cast<double>(t.met),
                                                                      static_cast<double>(t.real))) +
                               " % of the returns met"});
        }
}

void run(Arguments a, bench::Report& report) {
    const bench::ScratchDirectory scratch;
    const CancelToken cancel;
    Progress progress;
    if (a.folder.empty()) {
        a.folder = scratch.path() / "drive";
        bench::write_drive(bench::vans_at_the_seam(), a.folder);
    }
    if (a.tracks.empty()) a.tracks = a.folder + "/tracks.csv";
    const std::vector<Track> tracks = read_tracks(a.tracks, {}, cancel).tracks;
    objects::ScanInputs scans;
    scans.sources = expand_inputs(std::vector{a.folder});
    if (a.classes != "none") scans.classes = ClassMap::load(a.classes);
    const std::vector<double> stamps = stamps_of(tracks);
    if (stamps.size() != scans.sources.size())
        throw InputError(a.tracks + ": it has boxes of " + std::to_string(stamps.size()) + " moments for " +
                         std::to_string(scans.sources.size()) + " scans; one for each scan is needed");
    objects::ScanInputs even = scans;
    std::vector<InputSource> judged;
    even.sources.clear();
    api::BuildOptions build;
    for (std::size_t i = 0; i < scans.sources.size(); ++i) {
        (i % 2 == 0 ? even.sources : judged).push_back(scans.sources[i]);
        if (i % 2 == 0) build.inputs.push_back(scans.sources[i].path.string());
    }
    objects::BankWriter writer(scratch.path() / "bank");
    objects::BankBuildOptions options;
    options.source = "drive";
    options.least_points = 50;
    const std::vector<Track> even_boxes = even_tracks(tracks, stamps);
    const objects::BankReport made =
        objects::build_bank(writer, {even_boxes, even}, options, cancel, progress);
    writer.commit();
    const objects::Bank bank = objects::Bank::open(scratch.path() / "bank");
    const objects::BoxTimeStudy truth = objects::study_box_times(scans, tracks, made.box_times, cancel);
    if (a.city.empty()) {
        a.city = (scratch.path() / "city").string();
        if (a.classes != "none") build.classes = a.classes, build.method = "adaptive";
        if (!a.untracked) {
            build.tracks = scratch.path() / "aligned.csv";
            write_tracks(build.tracks, made.aligned_tracks());
        }
        (void)api::build(a.city, build);
    }
    std::vector<Subject> subjects;
    std::uint32_t shapes = 0;
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        subjects.push_back({truth.tracks[i], made.tracks[i].aligned});
        if (made.tracks[i].object) subjects.back().shape = shapes++;
    }
    const auto load_shapes = [&] {
        std::vector<sim::Shape> loaded;
        for (const objects::TrackOutcome& t : made.tracks)
            if (t.object) loaded.push_back({t.object->name, bank.load(*t.object)});
        return loaded;
    };
    const tiling::CityReader city(a.city);
    Judge judge(scans.classes, std::move(subjects), load_shapes, city);
    report.text(std::to_string(made.kept()) + " of " + std::to_string(tracks.size()) +
                " tracks became objects; boxes taken as of " + objects::kBoxTimes.of(made.box_times));
    const sim::RecordedDrive drive(judged, scans.reading, {});
    for (std::size_t i = 0; i < judged.size(); ++i)
        drive.read(i, cancel, [&](const RecordedScan& scan) { judge.judge(scan, cancel); });
    for (std::size_t v = 0; v < kPoseNames.size(); ++v) {
        report.text(kPoseNames[v]);
        print(report, "moving objects", judge.all[v]);
        print(report, "cut by the seam", judge.seam[v]);
        print(report, "cut by the seam, above 8 m/s", judge.fast_seam[v]);
    }
    report.text("median error by speed: of all returns, and of those after the seam");
    print_by_speed(report, "moving objects", judge.by_speed, &Tally::errors_m);
    print_by_speed(report, "after the seam", judge.seam_by_speed, &Tally::late_errors_m);
    report.detail({"fastest object", judge.fastest_m_s, "m/s"});
    report.detail({"fastest object that is cut by the seam", judge.fastest_seam_m_s, "m/s"});
    report.text(std::string("by class, ") + kPoseNames[0]);
    for (auto& [name, tally] : judge.by_class) print(report, name, tally);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    return bench::run_bench(
        {"bench_resim",
         "A drive with tracked boxes, simulated again: city and objects from its even scans, judged on the "
         "odd ones, where each real return is a ray. Returns on moving objects of at least 50 returns, 5 to "
         "60 m away. Without a drive one is made whose truth is known: vans of 9 to 25 m/s where the turn of "
         "the sensor begins and ends.",
         [&](bench::Flags& flags) {
             flags.text("FOLDER", a.folder, "a drive with times of points and a box for each scan");
             flags.text("--tracks", a.tracks, "its boxes (default: FOLDER/tracks.csv)");
             flags.text("--classes", a.classes, "class map of its labels");
             flags.text("--city", a.city, "a city that was made from its even scans (default: build it)");
             flags.flag("--untracked", a.untracked,
                        "build the city without leaving out what is in the boxes of moving tracks");
         },
         [&](bench::Report& report) { run(a, report); }},
        argc, argv);
}
