#include "sim/calibrate/sensor_calibration.hpp"

#include "core/error.hpp"
#include "core/toml_text.hpp"

#include <cmath>
#include <sstream>

namespace citysplat::sim {

namespace {

/// A simulated return farther from the real one is another surface.
constexpr double kSameSurface_m = 0.3;
/// At grazing incidence an error of the surface or the beam is many times larger in range.
constexpr float kSteep = 0.5f;
constexpr std::size_t kMostRanges = 8'000'000;

const SpinningHead& head_of(const Sensor& sensor) {
    if (const auto* head = std::get_if<SpinningHead>(&sensor.rays)) return *head;
    throw ConfigError("sensor \"" + sensor.id +
                      "\" is not of kind \"spinning\"; calibrate its ranges with a table of known distances");
}

/// Rounded to 1 / `per_unit`; without −0.
toml::array list_of(const std::vector<double>& values, double per_unit) {
    toml::array list;
    for (const double v : values) list.push_back(std::round(v * per_unit) / per_unit + 0.0);
    return list;
}

toml::table& table_at(toml::table& root, std::string_view key) {
    if (!root.contains(key)) root.insert(key, toml::table{});
    return *root.get(key)->as_table();
}

void put_beams(toml::table& root, const BeamCalibration::Result& found) {
    toml::table& beams = table_at(root, "beams");
    for (const char* key : {"count", "first_deg", "last_deg"}) beams.erase(key);
    std::vector<double> elevation, azimuth, time;
    for (const Beam& beam : found.beams) {
        elevation.push_back(beam.elevation_rad * exact::kDegreesPerRad);
        azimuth.push_back(beam.azimuth_rad * exact::kDegreesPerRad);
        time.push_back(beam.time_s * 1e6);
    }
    beams.insert_or_assign("elevation_deg", list_of(elevation, 1e5));
    if (found.azimuths) beams.insert_or_assign("azimuth_deg", list_of(azimuth, 1e5));
    if (found.times) beams.insert_or_assign("time_us", list_of(time, 1e3));
}

toml::array coefficients(const Quadratic& q) { return toml::array{q.a, q.b, q.c}; }

}  // namespace

SensorCalibration::SensorCalibration(const Sensor& sensor, std::vector<std::uint32_t> beam_of)
    : before_(sensor.error),
      beam_of_(beam_of),
      beams_(head_of(sensor), std::move(beam_of)),
      intensity_(static_cast<std::uint32_t>(head_of(sensor).beams.size())) {}

void SensorCalibration::add(const RecordedScan& scan, std::span<const Return> simulated) {
    ++scans_;
    beams_.add(scan);
    for (std::size_t i = 0; i < scan.returns; ++i) {
        const RecordedRay& real = scan.rays[i];
        const Return& r = simulated[i];
        if (r.status != RayStatus::hit || r.cosine < kSteep) continue;
        const double true_m = static_cast<double>(r.range_m);
        if (std::fabs(real.range_m - true_m) > kSameSurface_m) continue;
        if (ranges_.size() < kMostRanges) ranges_.push_back({true_m, real.range_m});
        if (scan.has_intensity && real.beam < beam_of_.size())
            intensity_.add(beam_of_[real.beam], real.intensity, r);
    }
}

CalibratedSensor SensorCalibration::result() const {
    CalibratedSensor found;
    found.scans = scans_;
    found.range = calibrate_range(ranges_, before_);
    found.beams = beams_.result();
    found.intensity = intensity_.result();
    return found;
}

std::string calibrated_text(std::string_view text, std::string_view origin, const CalibratedSensor& found,
                            const std::string& note) {
    toml::table root = parse_toml(text, origin);
    root.insert_or_assign("source", note + " " + root["source"].value_or(std::string()));
    if (found.range) {
        toml::table& error = table_at(root, "error");
        error.insert_or_assign("bias_m", coefficients(found.range->error.bias_m));
        error.insert_or_assign("sigma_m", coefficients(found.range->error.sigma_m));
    }
    if (found.beams) put_beams(root, *found.beams);
    if (found.intensity && !found.intensity->gain.empty()) {
        toml::table& intensity = table_at(root, "intensity");
        intensity.insert_or_assign("incidence_power", found.intensity->law.incidence_power);
        intensity.insert_or_assign("range_power", found.intensity->law.range_power);
        table_at(root, "beams").insert_or_assign("gain", list_of(found.intensity->gain, 1e4));
    }
    std::ostringstream out;
    out << root << "\n";
    return out.str();
}

}  // namespace citysplat::sim
