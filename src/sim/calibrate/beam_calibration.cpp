#include "sim/calibrate/beam_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace citysplat::sim {

namespace {

constexpr double kTurn_rad = 2 * exact::kPi;

/// Nearer returns are blurred by the rounding of their coordinates.
constexpr double kLeastRange_m = 3;
/// Of one beam; fewer say nothing.
constexpr std::size_t kLeastReturns = 20, kMostReturns = 200'000;
/// Returns farther from the median are of another beam.
constexpr double kSameBeam_rad = 0.1 * exact::kRadPerDegree;
/// How sharp the times within a column must be to mean something: 1 is one moment, 0 is any.
constexpr double kSharp = 0.5;

double wrapped(double rad) { return rad - kTurn_rad * std::floor(rad / kTurn_rad + 0.5); }

/// The mean of what is near the median.
double middle_of(std::vector<float> values) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), at, values.end());
    const auto median = static_cast<double>(*at);
    double sum = 0, n = 0;
    for (const float v : values)
        if (std::fabs(static_cast<double>(v) - median) <= kSameBeam_rad)
            sum += static_cast<double>(v), n += 1;
    return sum / n;
}

}  // namespace

BeamCalibration::BeamCalibration(const SpinningHead& head, std::vector<std::uint32_t> beam_of)
    : head_(head), beam_of_(std::move(beam_of)), returns_(head.beams.size()) {}

void BeamCalibration::add(const RecordedScan& scan) {
    for (std::size_t i = 0; i < scan.returns; ++i) {
        const RecordedRay& ray = scan.rays[i];
        if (ray.beam >= beam_of_.size() || ray.range_m < kLeastRange_m) continue;
        Returns& of = returns_[beam_of_[ray.beam]];
        if (of.elevation_rad.size() < kMostReturns)
            of.elevation_rad.push_back(static_cast<float>(ray.elevation_rad));
    }
    add_azimuths(scan);
}

/// The head turns evenly: its azimuth is a straight line of time, fitted to the returns of the scan, each
/// taken back by how far the sensor file says that its beam is ahead.
void BeamCalibration::add_azimuths(const RecordedScan& scan) {
    const SpinningPattern& p = head_.pattern;
    const double turn_rad_s = p.step_rad / p.column_time_s;
    if (scan.returns < 2 || scan.rays[0].time_s == scan.rays[scan.returns - 1].time_s) return;
    if (!any_time_) first_time_s_ = scan.rays[0].time_s;
    any_time_ = true;
    const double t0 = scan.rays[0].time_s;
    const auto usable = [&](const RecordedRay& ray) {
        return ray.beam < beam_of_.size() && ray.range_m >= kLeastRange_m;
    };
    const auto off = [&](const RecordedRay& ray) {
        return ray.azimuth_rad - turn_rad_s * (ray.time_s - t0) - head_.beams[beam_of_[ray.beam]].azimuth_rad;
    };
    // The mean direction first: angles wrap.
    double c = 0, s = 0;
    for (std::size_t i = 0; i < scan.returns; ++i) {
        if (!usable(scan.rays[i])) continue;
        const exact::SinCos angle = exact::sin_cos(off(scan.rays[i]));
        c += angle.cos, s += angle.sin;
    }
    const double mean = exact::atan2(s, c);
    double n = 0, t_sum = 0, tt = 0, a_sum = 0, ta = 0;
    for (std::size_t i = 0; i < scan.returns; ++i) {
        if (!usable(scan.rays[i])) continue;
        const double t = scan.rays[i].time_s - t0, a = wrapped(off(scan.rays[i]) - mean);
        n += 1, t_sum += t, tt += t * t, a_sum += a, ta += t * a;
    }
    const double spread = n * tt - t_sum * t_sum;
    if (!(spread > 0)) return;
    const double slope = (n * ta - t_sum * a_sum) / spread, offset = (a_sum - slope * t_sum) / n;
    for (std::size_t i = 0; i < scan.returns; ++i) {
        const RecordedRay& ray = scan.rays[i];
        if (!usable(ray)) continue;
        const double t = ray.time_s - t0;
        Returns& of = returns_[beam_of_[ray.beam]];
        if (of.azimuth_rad.size() < kMostReturns)
            of.azimuth_rad.push_back(static_cast<float>(wrapped(off(ray) - mean - offset - slope * t)));
        const double columns = (ray.time_s - first_time_s_) / p.column_time_s;
        const exact::SinCos phase = exact::sin_cos(kTurn_rad * (columns - std::floor(columns)));
        of.time_cos += phase.cos;
        of.time_sin += phase.sin;
        ++of.timed;
    }
}

/// Relative to the head, whose own azimuth nobody knows: the mean over the beams stays.
void BeamCalibration::find_azimuths(Result& result) const {
    double mean = 0, seen = 0;
    std::vector<double> ahead(result.beams.size());
    for (std::size_t b = 0; b < returns_.size(); ++b) {
        if (returns_[b].azimuth_rad.size() < kLeastReturns) continue;
        ahead[b] = middle_of(returns_[b].azimuth_rad);
        mean += ahead[b], seen += 1;
    }
    if (seen == 0) return;
    result.azimuths = true;
    for (std::size_t b = 0; b < returns_.size(); ++b)
        if (returns_[b].azimuth_rad.size() >= kLeastReturns)
            result.beams[b].azimuth_rad += ahead[b] - mean / seen;
}

/// Times within a column are points on a circle; it is cut where the longest pause is.
void BeamCalibration::find_times(Result& result) const {
    std::vector<std::pair<double, std::size_t>> phases;
    for (std::size_t b = 0; b < returns_.size(); ++b) {
        const Returns& of = returns_[b];
        if (of.timed < kLeastReturns) continue;
        const double length = std::sqrt(of.time_cos * of.time_cos + of.time_sin * of.time_sin);
        if (length < kSharp * static_cast<double>(of.timed)) return;
        const double turns = exact::atan2(of.time_sin, of.time_cos) / kTurn_rad;
        phases.emplace_back(turns - std::floor(turns), b);
    }
    if (phases.empty()) return;
    std::sort(phases.begin(), phases.end());
    double begin = phases[0].first, pause = phases[0].first + 1 - phases.back().first;
    for (std::size_t i = 1; i < phases.size(); ++i)
        if (phases[i].first - phases[i - 1].first > pause)
            pause = phases[i].first - phases[i - 1].first, begin = phases[i].first;
    result.times = true;
    // Files round times; what is nearer together than this fires at once.
    constexpr double kSameMoment_s = 2e-7;
    for (const auto& [phase, b] : phases) {
        const double after = phase - begin;
        const double time_s =
            (after < -1e-9 ? after + 1 : std::max(0.0, after)) * head_.pattern.column_time_s;
        result.beams[b].time_s = time_s < kSameMoment_s ? 0 : time_s;
    }
}

BeamCalibration::Result BeamCalibration::result() const {
    Result result;
    result.beams = head_.beams;
    for (std::size_t b = 0; b < returns_.size(); ++b) {
        if (returns_[b].elevation_rad.size() < kLeastReturns) continue;
        result.beams[b].elevation_rad = middle_of(returns_[b].elevation_rad);
        ++result.beams_seen;
    }
    find_azimuths(result);
    find_times(result);
    return result;
}

}  // namespace citysplat::sim
