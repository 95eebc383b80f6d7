#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"
#include "io/drive/drive_formats.hpp"
#include "io/drive/oxts.hpp"
#include "io/drive/sensor_turn.hpp"
#include "io/points/text_table.hpp"

#include <algorithm>
#include <cmath>
#include <map>

/// KITTI raw: DATE_drive_NNNN_sync or _extract with velodyne_points/ and oxts/, and the day's calibration in
/// the folder or above it. The scans are as the sensor delivered them. Excerpts that people keep may lack the
/// timestamps, some of the frames, or the folders named data.
namespace citysplat::io {

namespace fs = std::filesystem;

namespace {

using Compensated = DriveOptions::Compensated;

constexpr double kUsualPeriod_s = 0.1;
constexpr NumberRange kPeriod_s{0.02, 0.5, "s"};
/// Clocks of real drives step back now and then. So large a share of times may be left out for that.
constexpr double kMostLeftOut = 0.1;

/// The folder data/ in it, or itself.
fs::path data_of(const fs::path& folder) {
    return fs::is_directory(folder / "data") ? folder / "data" : folder;
}

/// The scans of the drive; binary ones where there are both kinds.
std::vector<fs::path> scans_of(const fs::path& folder) {
    const fs::path data = data_of(folder / "velodyne_points");
    std::vector<fs::path> scans = numbered_files_in(data, {".bin"});
    if (scans.empty()) scans = numbered_files_in(data, {".txt"});
    if (scans.empty())
        throw InputError(data.string() + ": no .bin or .txt scans that are named by their number");
    return scans;
}

/// The day's calibration is beside the drives of the day, or where people put it.
fs::path find_calibration(const fs::path& folder) {
    constexpr const char* kName = "calib_imu_to_velo.txt";
    constexpr int kUp = 2;
    fs::path at = fs::absolute(folder / ".").lexically_normal().parent_path();
    for (int up = 0; up <= kUp; ++up, at = at.parent_path())
        for (const fs::path& place : {at / kName, at / "calib" / kName})
            if (fs::exists(place)) return place;
    throw InputError(folder.string() + ": no " + kName +
                     " in this folder, the one above it or the next, nor in their calib/; it is in KITTI's "
                     "calibration files of "
                     "the day and says where the scanner sits on the car. Put it beside velodyne_points");
}

/// Of a matrix by rows, as texts round it.
bool is_rotation(const std::vector<double>& r) {
    constexpr double kRounded = 0.01;
    const Vec3d x{r[0], r[1], r[2]}, y{r[3], r[4], r[5]}, z{r[6], r[7], r[8]};
    const double off[]{dot(x, x) - 1, dot(y, y) - 1, dot(z, z) - 1,          dot(x, y),
                       dot(y, z),     dot(z, x),     dot(x, cross(y, z)) - 1};
    return std::all_of(std::begin(off), std::end(off), [](double v) { return std::fabs(v) < kRounded; });
}

/// Sensor from body: "R: nine numbers" and "T: three numbers".
Pose read_calibration(const fs::path& folder) {
    const fs::path path = find_calibration(folder);
    const std::string text = read_text_file(path);
    std::map<std::string, std::vector<double>> found;
    for (const Line& line : Lines(text))
        for (const auto& [name, count] : {std::pair{"R:", 9}, std::pair{"T:", 3}}) {
            if (!line.text.starts_with(name)) continue;
            std::vector<double> row(static_cast<std::size_t>(count));
            if (parse_row(line.text.substr(2), row, path.string(), line.number) != row.size())
                throw InputError(path.string() + ": line " + std::to_string(line.number) + ": expected " +
                                 std::to_string(count) + " numbers after " + name);
            found[name] = row;
        }
    if (found.size() != 2) throw InputError(path.string() + ": expected the lines \"R:\" and \"T:\"");
    const auto &r = found["R:"], &t = found["T:"];
    if (!is_rotation(r))
        throw InputError(
            path.string() +
            ": R is not a rotation: its rows should be of length 1, at right angles to each other, "
            "and not mirrored");
    const Vec3d lever{t[0], t[1], t[2]};
    if (!(length(lever) <= ranges::kLever_m.most))
        throw InputError(path.string() + ": T is " + format_number(length(lever)) +
                         " m long; expected the metres between two devices on a car");
    Quaternion q = from_rotation_matrix({r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]});
    const double n = std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    return {lever, {q.x / n, q.y / n, q.z / n, q.w / n}};
}

/// A time for any frame, from the times of some: on straight lines between them, and with the usual step
/// beyond them.
class FrameClock {
  public:
    /// Requires at least one frame.
    FrameClock(std::map<std::size_t, double> by_number, double usual_step_s)
        : by_number_(std::move(by_number)), usual_step_s_(usual_step_s) {}

    double at(std::size_t number) const {
        const auto after = by_number_.lower_bound(number);
        if (after == by_number_.begin()) return from(*after, number);
        const auto before = std::prev(after);
        if (after == by_number_.end()) return from(*before, number);
        const double share =
            static_cast<double>(number - before->first) / static_cast<double>(after->first - before->first);
        return before->second + share * (after->second - before->second);
    }

  private:
    double from(const std::pair<const std::size_t, double>& known, std::size_t number) const {
        return known.second +
               usual_step_s_ * (static_cast<double>(number) - static_cast<double>(known.first));
    }

    std::map<std::size_t, double> by_number_;
    double usual_step_s_;
};

double usual_step(const std::map<std::size_t, double>& by_number) {
    std::vector<double> steps;
    for (auto at = by_number.begin(); at != by_number.end() && std::next(at) != by_number.end(); ++at)
        steps.push_back((std::next(at)->second - at->second) /
                        static_cast<double>(std::next(at)->first - at->first));
    return steps.empty() ? 0 : median_of(std::move(steps));
}

FrameClock clock_of(std::map<std::size_t, double> by_number) {
    const double step_s = usual_step(by_number);
    return {std::move(by_number), step_s > 0 ? step_s : kUsualPeriod_s};
}

/// Of what a file of timestamps tells. Records of OXTS out of order are left out later, with their poses.
enum class StampsOf { scans, records };

/// The lines of a timestamps file by the number of the frame.
class Stamps {
  public:
    Stamps(const fs::path& path, const std::vector<fs::path>& files, StampsOf what = StampsOf::scans)
        : path_(path) {
        if (!fs::exists(path)) return;
        const auto lines = read_timestamps(path);
        if (lines.empty() || files.empty()) return;
        // A drive that was cut out of a longer one may keep the numbers of the files but not all the lines.
        const bool by_number = lines.size() > number_of(files.back());
        if (!by_number && lines.size() != files.size())
            throw InputError(path.string() + ": " + std::to_string(lines.size()) + " times for " +
                             std::to_string(files.size()) + " files up to number " +
                             std::to_string(number_of(files.back())) +
                             "; expected one for each frame. Without the file " +
                             "the frames are taken to follow each other evenly");
        for (std::size_t i = 0; i < lines.size(); ++i)
            if (lines[i]) times_s_[by_number ? i : number_of(files[i])] = *lines[i];
        if (what == StampsOf::scans) leave_out_disordered();
        fill(files);
    }
    /// The middle between two stamps of each frame. Requires both of the same files; frames without a file
    /// may have a stamp in one of them alone.
    Stamps(const Stamps& begins, const Stamps& ends) : path_(begins.path_), filled_(begins.filled_) {
        for (const auto& [number, begin_s] : begins.times_s_)
            if (const auto end = ends.times_s_.find(number); end != ends.times_s_.end())
                times_s_[number] = (begin_s + end->second) / 2;
    }
    bool there() const { return !times_s_.empty(); }
    /// Of a frame whose file is there.
    double of(std::size_t number) const { return times_s_.at(number); }
    /// Takes over the count of another file's.
    void count_also(const Stamps& other) { filled_ = std::max(filled_, other.filled_); }
    /// How many frames had an empty line, or one that does not follow those before it.
    std::size_t filled() const { return filled_; }

  private:
    /// Frames follow each other. The times of a few that do not are as good as none; a time that is there
    /// twice is taken for that of neither frame.
    void leave_out_disordered() {
        std::map<double, std::size_t> uses;
        for (const auto& [number, time_s] : times_s_) ++uses[time_s];
        std::vector<double> times;
        std::vector<std::size_t> numbers;
        for (const auto& [number, time_s] : times_s_)
            if (uses[time_s] == 1) numbers.push_back(number), times.push_back(time_s);
        std::map<std::size_t, double> kept;
        for (const std::size_t i : longest_ascending(times)) kept[numbers[i]] = times[i];
        const std::size_t all = times_s_.size(), out = all - kept.size();
        if (static_cast<double>(out) > kMostLeftOut * static_cast<double>(all)) {
            const auto first = std::find_if(times_s_.begin(), times_s_.end(),
                                            [&](const auto& time) { return !kept.contains(time.first); });
            throw InputError(path_.string() + ": the times of " + std::to_string(out) + " of " +
                             std::to_string(all) + " frames do not follow those before them, that of frame " +
                             std::to_string(first->first) +
                             " for one; are they of this drive? Without the file the frames are taken to "
                             "follow each other evenly");
        }
        times_s_ = std::move(kept);
    }

    /// Frames with an empty line are where they are evenly between those around them.
    void fill(const std::vector<fs::path>& files) {
        if (times_s_.empty()) return;
        const FrameClock clock = clock_of(times_s_);
        std::map<std::size_t, double> filled;
        for (const fs::path& file : files)
            if (const std::size_t number = number_of(file); !times_s_.contains(number))
                filled[number] = clock.at(number);
        filled_ = filled.size();
        if (2 * filled_ > files.size())
            throw InputError(path_.string() + ": no time for frame " + std::to_string(filled.begin()->first) +
                             " and " + std::to_string(filled_ - 1) +
                             " others; without the file the frames are taken to follow each other evenly");
        times_s_.merge(filled);
    }

    fs::path path_;
    std::map<std::size_t, double> times_s_;
    std::size_t filled_ = 0;
};

/// When the scans looked forward; by their begins and ends where nothing else says it.
Stamps forward_stamps(const fs::path& folder, const std::vector<fs::path>& scans) {
    Stamps forward(folder / "timestamps.txt", scans);
    const Stamps begins(folder / "timestamps_start.txt", scans), ends(folder / "timestamps_end.txt", scans);
    if (!forward.there() && begins.there() && ends.there()) forward = Stamps(begins, ends);
    forward.count_also(begins);
    forward.count_also(ends);
    return forward;
}

std::vector<OxtsFrame> read_frames(const DriveRequest& request, const std::vector<fs::path>& files) {
    std::vector<OxtsFrame> frames;
    for (const fs::path& file : files) {
        request.cancel.check();
        try {
            frames.push_back({number_of(file), read_oxts(file), {}});
        } catch (const InputError& e) {
            throw InputError(std::string(e.what()) +
                             "; without this file the pose of its frame follows from those around it");
        }
    }
    const OxtsRecord& first = frames.front().record;
    const OxtsPlane plane(request.options.origin.value_or(
        DriveOptions::Geodetic{first.latitude_deg, first.longitude_deg, first.altitude_m}));
    for (OxtsFrame& frame : frames) frame.world_from_body = plane.world_from_body(frame.record);
    return frames;
}

/// When records and scans were made, and how that is known.
struct Times {
    std::vector<double> records_s;
    std::map<std::size_t, double> forward_s;  ///< of each scan, by number: when it looked forward
    double period_s = kUsualPeriod_s;
    std::string from;
    bool assumed = false;
    std::size_t filled = 0;  ///< frames and records whose line in a file of times is empty or out of order
};

/// From times by record to times of the scans with those numbers.
void take_forward(Times& times, const std::vector<fs::path>& scans, const std::vector<OxtsFrame>& frames,
                  const std::vector<double>& frames_s) {
    std::map<std::size_t, double> by_number;
    for (std::size_t i = 0; i < frames.size(); ++i) by_number[frames[i].number] = frames_s[i];
    const FrameClock clock = clock_of(std::move(by_number));
    for (const fs::path& scan : scans) times.forward_s[number_of(scan)] = clock.at(number_of(scan));
}

/// Records and scans belong together by their numbers unless both have times.
void refuse_unsynchronised(const fs::path& folder, const std::vector<OxtsFrame>& frames,
                           const std::vector<double>& frames_s) {
    std::map<std::size_t, double> by_number;
    for (std::size_t i = 0; i < frames.size(); ++i) by_number[frames[i].number] = frames_s[i];
    const double step_s = usual_step(by_number);
    if (!(step_s > 0 && step_s < kPeriod_s.least)) return;
    throw InputError((folder / "oxts").string() + ": a record every " + with_unit(1000 * step_s, 0, "ms") +
                     ", as unsynchronised drives have them: their numbers are not those of the scans. "
                     "Such a drive needs oxts/timestamps.txt and velodyne_points/timestamps.txt");
}

Times times_of(const DriveRequest& request, const std::vector<fs::path>& scans,
               const std::vector<OxtsFrame>& frames, const Stamps& oxts_stamps) {
    const Stamps stamps = forward_stamps(request.folder / "velodyne_points", scans);
    Times times;
    times.filled = stamps.filled() + oxts_stamps.filled();
    if (stamps.there())
        for (const fs::path& scan : scans) times.forward_s[number_of(scan)] = stamps.of(number_of(scan));
    if (oxts_stamps.there()) {
        for (const OxtsFrame& frame : frames) times.records_s.push_back(oxts_stamps.of(frame.number));
        times.from = "the timestamps of OXTS and scans";
        if (!stamps.there()) {
            refuse_unsynchronised(request.folder, frames, times.records_s);
            take_forward(times, scans, frames, evened(times.records_s, frames));
            times.from = "the timestamps of OXTS, evened: the scans have none";
        }
    } else {
        const auto by_speed = request.options.rate_hz ? std::nullopt : times_by_speed(frames);
        const double period_s = request.options.rate_hz ? 1 / *request.options.rate_hz : kUsualPeriod_s;
        std::vector<double> frames_s;
        for (const OxtsFrame& frame : frames)
            frames_s.push_back(static_cast<double>(frame.number - frames.front().number) * period_s);
        times.records_s = by_speed ? by_speed->records_s : frames_s;
        if (by_speed) frames_s = by_speed->frames_s;
        refuse_unsynchronised(request.folder, frames, frames_s);
        times.assumed = !by_speed;
        times.from = std::string("OXTS has no timestamps: ") +
                     (by_speed ? "its times are found by way and speed between its records, in steps of 10 ms"
                      : request.options.rate_hz ? "the rate is given by --rate"
                                                : "10 frames a second are assumed; --rate says otherwise");
        if (!stamps.there()) {
            take_forward(times, scans, frames, frames_s);
        } else {
            // The record of a frame is as much before or behind its scan as it is off the even frames.
            const FrameClock clock = clock_of(times.forward_s);
            for (std::size_t i = 0; i < frames.size(); ++i)
                times.records_s[i] += clock.at(frames[i].number) - frames_s[i];
            times.from += "; the scans have theirs";
        }
    }
    const double step_s = usual_step(times.forward_s);
    if (kPeriod_s.contains(step_s)) times.period_s = step_s;
    if (request.options.rate_hz) times.period_s = 1 / *request.options.rate_hz;
    return times;
}

/// Poses of the sensor, those that follow one another in time: clocks of real drives step back now and then.
/// Says how many were left out.
std::size_t take_poses(const std::vector<OxtsFrame>& frames, std::span<const double> times_s,
                       const Pose& body_from_sensor, std::vector<StampedPose>& poses) {
    const std::vector<std::size_t> ascending = longest_ascending(times_s);
    const std::size_t left_out = frames.size() - ascending.size();
    // With more, Trajectory refuses the drive and names the record.
    const bool all = static_cast<double>(left_out) > kMostLeftOut * static_cast<double>(frames.size());
    for (std::size_t k = 0; k < (all ? frames.size() : ascending.size()); ++k) {
        const std::size_t i = all ? k : ascending[k];
        poses.push_back({times_s[i], frames[i].world_from_body * body_from_sensor});
    }
    return left_out;
}

/// The turn of each scan: by its own stamps of begin and end, or a period around the moment it looked
/// forward. Says how it is known.
std::string set_turns(Drive& drive, const Times& times, const DriveRequest& request, const ScanOrder& order) {
    std::vector<fs::path> files;
    for (const DriveScan& scan : drive.scans) files.push_back(scan.path);
    const fs::path folder = request.folder / "velodyne_points";
    const Stamps begins(folder / "timestamps_start.txt", files), ends(folder / "timestamps_end.txt", files);
    const Stamps middles(folder / "timestamps.txt", files);
    const bool stamped = begins.there() && ends.there();
    const Compensated compensated =
        request.options.compensated == Compensated::automatic ? Compensated::no : request.options.compensated;
    for (auto& [path, sweep, labels] : drive.scans) {
        const std::size_t number = number_of(path);
        const double forward_s = times.forward_s.at(number);
        sweep = sweep_at(forward_s, {compensated, times.period_s}, order);
        if (compensated != Compensated::no || !stamped) continue;
        const double begin_s = begins.of(number), turn_s = ends.of(number) - begin_s;
        if (!kPeriod_s.contains(turn_s))
            throw InputError(
                (folder / "timestamps_end.txt").string() + ": the turn of frame " + std::to_string(number) +
                " takes " + format_number(turn_s) + " s; expected a time " + kPeriod_s.text() +
                ". Without timestamps_start and timestamps_end a scan looks forward in the middle "
                "of its turn");
        sweep.begin_s = sweep.reference_s = begin_s, sweep.end_s = begin_s + turn_s;
        const double share = (forward_s - begin_s) / turn_s;
        // A stamp of the moment it looked forward that is far from the middle is of something else.
        const double before = middles.there() && share > 0.3 && share < 0.7 ? share : 0.5;
        sweep.start_azimuth_rad = (order.clockwise ? 2 : -2) * exact::kPi * before;
    }
    if (compensated != Compensated::no) return "given by --compensated";
    return std::string(order.clockwise ? "clockwise" : "counterclockwise") +
           (stamped ? ", from timestamps_start to timestamps_end" : ", forward in the middle of the turn");
}

}  // namespace

bool is_kitti_raw(const fs::path& folder) { return fs::is_directory(folder / "velodyne_points"); }

Drive read_kitti_raw(const DriveRequest& request) {
    const fs::path& folder = request.folder;
    const std::vector<fs::path> scans = scans_of(folder);
    if (!fs::is_directory(folder / "oxts"))
        throw InputError(folder.string() +
                         ": no oxts/data, so nothing says where the car was; it is part of the "
                         "same download as velodyne_points");
    const std::vector<fs::path> files = numbered_files_in(data_of(folder / "oxts"), {".txt"});
    if (files.empty()) throw InputError(data_of(folder / "oxts").string() + ": no records");
    const Pose sensor_from_body = read_calibration(folder);
    const std::vector<OxtsFrame> frames = read_frames(request, files);
    const Times times =
        times_of(request, scans, frames, Stamps(folder / "oxts/timestamps.txt", files, StampsOf::records));

    std::vector<StampedPose> poses;
    const std::size_t left_out = take_poses(frames, times.records_s, inverse(sensor_from_body), poses);
    const Trajectory given(std::move(poses), (folder / "oxts").string());

    Drive drive;
    drive.kind = "KITTI raw";
    for (const fs::path& scan : scans) drive.scans.push_back({scan, {}, {}});
    ScanOrder order;
    order.start_azimuth_rad = exact::kPi;
    order.clockwise = request.options.spin != DriveOptions::Spin::counterclockwise;
    const std::string turn = set_turns(drive, times, request, order);
    for (const DriveScan& scan : drive.scans)
        if (scan.sweep.end_s < given.begin_s() - 1 || scan.sweep.begin_s > given.end_s() + 1)
            throw InputError(
                scan.path.string() + ": its time, " + format_number(scan.sweep.begin_s) +
                " s, is more than a second away from the records of OXTS (" + format_number(given.begin_s()) +
                " to " + format_number(given.end_s()) +
                " s). Are records or timestamps of another drive? Without timestamps records and "
                "scans belong together by their numbers");
    place_scans(drive, SmoothPath(given));
    drive.frame = drive.scans.front().sweep.frame;
    drive.rate_hz = 1 / times.period_s;
    drive.lever_arm_m = inverse(sensor_from_body).translation;

    tell_missing_scans(drive);
    drive.facts.emplace_back("turn", turn);
    drive.facts.emplace_back("clock", times.from);
    if (times.assumed) drive.assumptions.push_back(times.from);
    if (times.filled > 0)
        drive.assumptions.push_back(std::to_string(times.filled) +
                                    " lines of timestamps are empty or do not follow those before them: "
                                    "these times follow from those around them");
    if (left_out > 0)
        drive.assumptions.push_back(
            std::to_string(left_out) + " of " + std::to_string(frames.size()) +
            " OXTS records are left out: their times do not follow those before them");
    const OxtsRecord& first = frames.front().record;
    const auto origin = request.options.origin.value_or(
        DriveOptions::Geodetic{first.latitude_deg, first.longitude_deg, first.altitude_m});
    drive.origin = origin;
    drive.facts.emplace_back("poses",
                             std::to_string(frames.size()) + " OXTS records, through calib_imu_to_velo.txt");
    drive.facts.emplace_back(
        "origin",
        "latitude " + with_unit(origin.latitude_deg, 9, "°, longitude ") +
            with_unit(origin.longitude_deg, 9, "°, altitude ") + with_unit(origin.altitude_m, 3, "m") +
            " is 0, 0, 0; x east, y north" +
            (request.options.origin ? " (--origin)" : " (the first OXTS record; --origin says otherwise)"));
    return drive;
}

}  // namespace citysplat::io
