#include "io/drive/sensor_turn.hpp"

#include "core/math/math_hd.hpp"
#include "io/drive/sweep_clock.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace citysplat::io {

namespace {

using Compensated = DriveOptions::Compensated;

constexpr double kHdl32Firing_s = 46.08e-6;

/// Records of a scan that lie on the way of the sensor, were it compensated like that.
std::size_t records_on_way(const std::vector<Vec3d>& records, const Sweep& sweep) {
    constexpr double kClose_m = 0.03;
    const SweepClock clock(sweep, "scan");
    const Pose reference_from_world = inverse(clock.world_from_reference());
    std::size_t count = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
        Vec3d sensor{0, 0, 0};
        if (sweep.frame == Sweep::Frame::fixed)
            sensor = reference_from_world.apply(
                clock.world_from_sensor(clock.time_of_record(i, records.size())).translation);
        count += length(records[i] - sensor) < kClose_m;
    }
    return count;
}

}  // namespace

SensorTurn measure_turn(const std::vector<std::filesystem::path>& scans, std::size_t best,
                        const DriveRequest& request) {
    SensorTurn turn;
    std::set<std::size_t> beams;
    for (const std::size_t scan : {best, std::size_t{0}, scans.size() - 1}) {
        request.cancel.check();
        RawScan raw = read_raw(*request.open(scans[scan]), request.cancel);
        const ScanOrder order = order_of(raw.points);
        if (!order.by_firing) continue;
        beams.insert(order.elevations_rad.size());
        if (turn.order.by_firing) continue;
        turn.order = order;
        turn.scan = scan;
        turn.records = std::move(raw.points);
    }
    turn.from = "measured by the order of the points in the files";
    if (beams.size() > 1) turn.order.elevations_rad.clear();
    if (!turn.order.elevations_rad.empty())
        turn.columns =
            static_cast<double>(turn.records.size()) / static_cast<double>(turn.order.elevations_rad.size());
    if (request.options.spin != DriveOptions::Spin::automatic)
        turn.order.clockwise = request.options.spin == DriveOptions::Spin::clockwise;
    if (!turn.order.by_firing) {
        turn.order.start_azimuth_rad = exact::kPi;
        turn.from = "assumed: from the rear over the front to the rear";
    }
    return turn;
}

std::optional<double> period_by_firings_s(const SensorTurn& turn) {
    constexpr std::size_t kHdl32Beams = 32;
    if (turn.order.elevations_rad.size() != kHdl32Beams) return std::nullopt;
    return turn.columns * kHdl32Firing_s;
}

Sweep sweep_at(double pose_s, const SweepTiming& timing, const ScanOrder& order) {
    const auto [compensated, period_s] = timing;
    const double before = compensated == Compensated::begin ? 0 : compensated == Compensated::end ? 1 : 0.5;
    Sweep sweep;
    sweep.frame = compensated == Compensated::no ? Sweep::Frame::moving : Sweep::Frame::fixed;
    sweep.reference_s = pose_s;
    sweep.begin_s = pose_s - before * period_s;
    sweep.end_s = pose_s + (1 - before) * period_s;
    sweep.start_azimuth_rad = order.start_azimuth_rad;
    sweep.clockwise = order.clockwise;
    sweep.in_order = order.by_firing;
    sweep.elevations_rad = order.elevations_rad;
    return sweep;
}

void time_broken_scans(Drive& drive, const SensorTurn& turn, const DriveRequest& request) {
    // The turns of a sensor differ by a firing or two.
    constexpr double kMostOff = 0.02;
    const std::size_t beams = turn.order.elevations_rad.size();
    if (beams == 0) return;
    std::size_t broken = 0;
    for (DriveScan& scan : drive.scans) {
        request.cancel.check();
        const std::uint64_t records = request.open(scan.path)->info().points;
        const double columns = static_cast<double>(records) / static_cast<double>(beams);
        if (records % beams == 0 && std::fabs(columns - turn.columns) <= kMostOff * turn.columns) continue;
        scan.sweep.elevations_rad.clear();
        scan.sweep.in_order = false;
        ++broken;
    }
    if (broken > 0)
        drive.facts.emplace_back(
            "firings", std::to_string(broken) + " scans lack some; their times follow from the directions");
}

std::optional<Compensated> compensation_of(const SensorTurn& turn, double pose_s, double period_s,
                                           const SmoothPath& path) {
    constexpr double kMoved_m = 0.15;
    constexpr std::size_t kFewest = 100;
    if (turn.order.elevations_rad.empty()) return std::nullopt;
    if (length(path.at(pose_s + period_s / 2).translation - path.at(pose_s - period_s / 2).translation) <
        kMoved_m)
        return std::nullopt;
    std::optional<Compensated> best;
    std::size_t most = kFewest, second = 0;
    for (const Compensated c : {Compensated::no, Compensated::begin, Compensated::middle, Compensated::end}) {
        Sweep sweep = sweep_at(pose_s, {c, period_s}, turn.order);
        const Trajectory poses = path.resampled(sweep.begin_s, sweep.end_s);
        sweep.poses.assign(poses.poses().begin(), poses.poses().end());
        const std::size_t count = records_on_way(turn.records, sweep);
        if (count > most)
            second = most, most = count, best = c;
        else
            second = std::max(second, count);
    }
    return best && most > 2 * second ? best : std::nullopt;
}

}  // namespace citysplat::io
