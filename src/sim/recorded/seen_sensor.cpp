#include "sim/recorded/seen_sensor.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "sim/recorded/angles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace citysplat::sim {

namespace {

/// More scans would not say more.
constexpr std::size_t kMostScans = 8;
constexpr double kUsualRate_hz = 10;

/// What some scans show of a sensor.
struct Shown {
    std::vector<double> steps_rad, sweeps_s;  ///< of each scan
    double nearest_m = std::numeric_limits<double>::infinity(), farthest_m = 0;
    std::int64_t counterclockwise = 0;  ///< pairs of returns that say so, less those that say the opposite

    void add(const RecordedScan& scan) {
        if (scan.beams == 0) return;
        steps_rad.push_back(scan.azimuth_step_rad);
        std::vector<const RecordedRay*> before(scan.beams, nullptr);
        double first_s = std::numeric_limits<double>::infinity(), last_s = -first_s;
        for (std::size_t i = 0; i < scan.returns; ++i) {
            const RecordedRay& ray = scan.rays[i];
            first_s = std::min(first_s, ray.time_s), last_s = std::max(last_s, ray.time_s);
            nearest_m = std::min(nearest_m, ray.range_m), farthest_m = std::max(farthest_m, ray.range_m);
            if (ray.beam >= scan.beams) continue;
            if (const RecordedRay* other = std::exchange(before[ray.beam], &ray)) {
                const double turn =
                    wrapped(ray.azimuth_rad - other->azimuth_rad) * (ray.time_s - other->time_s);
                counterclockwise += turn > 0 ? 1 : turn < 0 ? -1 : 0;
            }
        }
        sweeps_s.push_back(last_s - first_s);
    }
};

/// Scans a second: what the drive says, else by the longest of the sweeps.
double rate_of(const RecordedDrive& drive, const Shown& shown) {
    const InputSource& source = drive.sources().front();
    if (source.drive && source.drive->rate_hz > 0) return source.drive->rate_hz;
    const double longest_s = *std::max_element(shown.sweeps_s.begin(), shown.sweeps_s.end());
    return longest_s > 0 ? 1 / longest_s : kUsualRate_hz;
}

std::string rounded(double value, double per_unit) {
    return format_number(std::round(value * per_unit) / per_unit + 0.0);
}

}  // namespace

std::string seen_sensor_text(const RecordedDrive& drive, const CancelToken& cancel) {
    Shown shown;
    const std::size_t files = drive.sources().size(), scans = std::min(kMostScans, files);
    for (std::size_t k = 0; k < scans; ++k)
        drive.read((2 * k + 1) * files / (2 * scans), cancel,
                   [&](const RecordedScan& scan) { shown.add(scan); });
    if (shown.steps_rad.empty())
        throw InputError("the scans show no beams of a spinning sensor; name the sensor with --sensor");
    std::string elevations;
    for (const double elevation_rad : drive.beams().elevation_rad)
        elevations += (elevations.empty() ? "" : ", ") + rounded(elevation_rad / kDegree_rad, 1e4);
    return "name = \"the sensor of these scans\"\n"
           "kind = \"spinning\"\n"
           "source = \"Beams, columns, rate and ranges as " +
           std::to_string(shown.steps_rad.size()) +
           " recorded scans show them. They show neither noise nor divergence.\"\n\n"
           "[spin]\nrate_hz = " +
           rounded(rate_of(drive, shown), 1e3) +
           "\ncolumns_per_turn = " + rounded(kTurn_rad / median_of(shown.steps_rad), 1) + "\nsense = \"" +
           (shown.counterclockwise > 0 ? "counterclockwise" : "clockwise") +
           "\"\n\n[beams]\nelevation_deg = [" + elevations +
           "]\n\n[range]\nmin_m = " + format_number(std::floor(shown.nearest_m * 10) / 10) +
           "\nmax_m = " + format_number(std::ceil(shown.farthest_m)) + "\n";
}

}  // namespace citysplat::sim
