#include "sim/sensor/sensor.hpp"

#include "core/embedded.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "core/toml_section.hpp"
#include "sim/sensor/ray_table.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::embedded {
std::span<const Text> sensors();  ///< datasets/sensors/*.toml
}

namespace citysplat::sim {

namespace {

constexpr std::uint64_t kMostBeams = 65535, kMostRaysPerScan = 100'000'000;

/// What no sensor exceeds.
constexpr NumberRange kElevation_deg{-90, 90, "degrees"}, kFieldOfView_deg{0.001, 360, "degrees"},
    kCameraView_deg{0.001, 169.999, "degrees"}, kPulseRate_hz{0.001, 1e9, "Hz"},
    kMirrorRate_hz{-1e6, 1e6, "Hz"}, kRange_m{0, 10'000, "m"}, kErrorCoefficient{-1000, 1000},
    kTime_us{0, 1e9, "µs"}, kGain{0, 1000};

void check_rays(double rays, const std::string& where) {
    if (!(rays >= 1 && rays <= static_cast<double>(kMostRaysPerScan)))
        throw ConfigError(where + ": a scan must have from 1 to " + std::to_string(kMostRaysPerScan) +
                          " rays");
}

std::uint32_t pulses_per_scan(double pulses_per_second, double scan_hz, const std::string& where) {
    const double pulses = std::floor(pulses_per_second / scan_hz + 0.5);
    check_rays(pulses, where);
    return static_cast<std::uint32_t>(pulses);
}

Quadratic quadratic(Section& section, std::string_view key) {
    const std::vector<double> v = section.numbers(key, kErrorCoefficient);
    if (v.size() > 3) section.fail(key, "has at most three coefficients");
    return {v.size() > 0 ? v[0] : 0, v.size() > 1 ? v[1] : 0, v.size() > 2 ? v[2] : 0};
}

SpinningHead read_beams(Section beams) {
    std::vector<double> elevations = beams.numbers("elevation_deg", kElevation_deg);
    if (elevations.empty()) {
        const std::uint64_t n = beams.whole("count", 1, kMostBeams);
        const double first = beams.number("first_deg", kElevation_deg),
                     last = beams.number("last_deg", kElevation_deg, first);
        for (std::uint64_t i = 0; i < n; ++i)
            elevations.push_back(n == 1 ? first
                                        : first + (last - first) * static_cast<double>(i) /
                                                      static_cast<double>(n - 1));
    }
    if (elevations.size() > kMostBeams)
        throw ConfigError(beams.where() + ": more than " + std::to_string(kMostBeams) + " beams");
    const auto column = [&](std::string_view key, const NumberRange& range) {
        std::vector<double> v = beams.numbers(key, range);
        if (v.empty()) v.assign(elevations.size(), 0);
        if (v.size() != elevations.size())
            throw ConfigError(beams.where() + ": \"" + std::string(key) + "\" has " +
                              std::to_string(v.size()) + " entries for " + std::to_string(elevations.size()) +
                              " beams");
        return v;
    };
    const auto azimuths = column("azimuth_deg", ranges::kAngle_deg), times = column("time_us", kTime_us);
    const bool has_gain = beams.has("gain");
    const auto gains = column("gain", kGain);
    beams.finish();
    SpinningHead result{};
    if (has_gain) result.gain.assign(gains.begin(), gains.end());
    for (std::size_t i = 0; i < elevations.size(); ++i)
        result.beams.push_back(
            {elevations[i] * exact::kRadPerDegree, azimuths[i] * exact::kRadPerDegree, times[i] * 1e-6});
    return result;
}

SpinningHead read_spinning(Section& root) {
    SpinningHead head = read_beams(root.section("beams"));
    Section spin = root.section("spin");
    const double rate_hz = spin.number("rate_hz", ranges::kScanRate_hz);
    const std::uint32_t per_turn = spin.count("columns_per_turn");
    constexpr NumberRange kTurns_deg{-720, 720, "degrees"};
    const double from_deg = spin.number("from_deg", kTurns_deg, 0.0),
                 to_deg = spin.number("to_deg", kTurns_deg, from_deg + 360);
    const std::string sense = spin.text("sense", "counterclockwise");
    if (sense != "clockwise" && sense != "counterclockwise")
        spin.fail("sense", "must be \"clockwise\" or \"counterclockwise\"");
    const double sign = sense == "clockwise" ? -1 : 1;
    spin.finish();
    const double step_deg = 360.0 / per_turn;
    if (!(to_deg > from_deg) || to_deg - from_deg > 360)
        throw ConfigError(spin.where() + ": from_deg … to_deg must span more than 0 and at most 360");
    // A full turn does not repeat its first column; a sector has a column on both ends.
    const bool full = to_deg - from_deg == 360;
    const auto columns =
        static_cast<std::uint32_t>(std::floor((to_deg - from_deg) / step_deg + 1e-6)) + (full ? 0 : 1);
    check_rays(static_cast<double>(head.beams.size()) * columns, root.where());
    head.pattern = {static_cast<std::uint32_t>(head.beams.size()), columns,
                    sign * from_deg * exact::kRadPerDegree, sign * step_deg * exact::kRadPerDegree,
                    1 / (rate_hz * per_turn)};
    for (const Beam& beam : head.beams)
        if (beam.time_s < 0 || beam.time_s > head.pattern.column_time_s)
            throw ConfigError(root.where() + ": [beams]: a time_us is not within the " +
                              std::to_string(head.pattern.column_time_s * 1e6) + " µs of a column");
    return head;
}

/// How many of what is numbered as beams are: returns have the number in 16 bits.
std::uint32_t numbered(Section& s, std::string_view key, std::optional<double> fallback = {}) {
    return static_cast<std::uint32_t>(s.whole(key, 1, kMostBeams, fallback));
}

RosettePattern read_rosette(Section& root, double scan_hz) {
    Section s = root.section("rosette");
    const double pulses = s.number("pulses_per_second", kPulseRate_hz);
    RosettePattern p{pulses_per_scan(pulses, scan_hz, s.where()),
                     numbered(s, "lines", 1.0),
                     1 / pulses,
                     s.number("first_hz", kMirrorRate_hz),
                     s.number("second_hz", kMirrorRate_hz),
                     s.number("horizontal_deg", kFieldOfView_deg) * exact::kRadPerDegree / 2,
                     s.number("vertical_deg", kFieldOfView_deg) * exact::kRadPerDegree / 2,
                     s.number("line_spacing_deg", ranges::kAngle_deg, 0.0) * exact::kRadPerDegree};
    s.finish();
    return p;
}

NoddingPattern read_nodding(Section& root, double scan_hz) {
    Section s = root.section("nodding");
    const double pulses = s.number("pulses_per_second", kPulseRate_hz);
    NoddingPattern p{pulses_per_scan(pulses, scan_hz, s.where()),
                     numbered(s, "lines", 1.0),
                     1 / pulses,
                     s.number("turn_hz", kMirrorRate_hz),
                     s.number("nod_hz", kMirrorRate_hz),
                     s.number("low_deg", kElevation_deg) * exact::kRadPerDegree,
                     s.number("high_deg", kElevation_deg) * exact::kRadPerDegree,
                     s.number("line_spacing_deg", ranges::kAngle_deg, 0.0) * exact::kRadPerDegree};
    s.finish();
    return p;
}

PinholePattern read_pinhole(Section& root) {
    Section s = root.section("pinhole");
    const auto tangent = [&](std::string_view key) {
        const exact::SinCos half = exact::sin_cos(s.number(key, kCameraView_deg) / 2 * exact::kRadPerDegree);
        return half.sin / half.cos;
    };
    PinholePattern p{s.count("columns"), numbered(s, "rows"), tangent("horizontal_deg"),
                     tangent("vertical_deg")};
    s.finish();
    check_rays(static_cast<double>(p.columns) * p.rows, s.where());
    return p;
}

RayTable read_table(Section& root, const std::filesystem::path& directory, double scan_hz) {
    RayTable table = read_ray_table(directory / root.text("table"), scan_hz);
    check_rays(static_cast<double>(table.most_rays()), root.where());
    return table;
}

/// In the order of ReturnMode.
constexpr const char* kReturnModes[] = {"line", "first", "strongest", "last", "dual"};

void read_models(Section& root, Sensor& sensor) {
    Section range = root.section("range");
    sensor.min_range_m = range.number("min_m", kRange_m, 0.0);
    sensor.max_range_m = range.number("max_m", kRange_m);
    range.finish();
    if (sensor.min_range_m >= sensor.max_range_m)
        throw ConfigError(range.where() + ": min_m must be below max_m");

    Section beam = root.section("beam");
    sensor.beam.divergence_rad = beam.number("divergence_mrad", {0, 1000, "mrad"}, 0.0) * 1e-3;
    sensor.beam.resolution_m = beam.number("resolution_m", {0, 100, "m"}, sensor.beam.resolution_m);
    sensor.beam.rays = static_cast<std::uint32_t>(
        beam.whole("rays", 1, kMostSubRays, static_cast<double>(sensor.beam.rays)));
    if (!is_bundle(sensor.beam.rays)) beam.fail("rays", "must be 7 or 19");
    sensor.beam.set_returns(beam.text("returns", kReturnModes[0]), beam.where());
    beam.finish();

    Section error = root.section("error");
    sensor.error = {quadratic(error, "bias_m"), quadratic(error, "sigma_m")};
    error.finish();

    Section intensity = root.section("intensity");
    sensor.intensity = {static_cast<int>(intensity.whole("incidence_power", 0, 8, 0.0)),
                        static_cast<int>(intensity.whole("range_power", 0, 8, 0.0))};
    intensity.finish();

    Section drop = root.section("drop");
    sensor.drop = {drop.number("probability", {0, 1}, 0.0),
                   drop.number("max_incidence_deg", {0, 90, "degrees"}, 90.0)};
    drop.finish();
}

/// Upper and lower case are the same: data sheets say HDL-64E.
const embedded::Text* shipped(std::string_view name) {
    for (const auto& text : embedded::sensors())
        if (lower_case(name) == lower_case(text.name)) return &text;
    return nullptr;
}

std::string known_names() {
    std::string known;
    for (const auto& name : Sensor::builtin_names()) known += (known.empty() ? "" : ", ") + name;
    return known;
}

}  // namespace

void BeamShape::set_returns(std::string_view word, const std::string& where) {
    const auto* found = std::find(std::begin(kReturnModes), std::end(kReturnModes), word);
    if (found == std::end(kReturnModes))
        throw ConfigError(where + ": returns \"" + std::string(word) +
                          "\" are not one of line, first, strongest, last, dual");
    returns = static_cast<ReturnMode>(found - std::begin(kReturnModes));
    if (returns != ReturnMode::line && !(divergence_rad > 0))
        throw ConfigError(where + ": returns \"" + std::string(word) +
                          "\" need the width of the beam: give [beam] divergence_mrad in the sensor file");
}

Sensor Sensor::parse(std::string_view text, std::string_view origin, const std::filesystem::path& directory) {
    const toml::table table = parse_toml(text, origin);
    Section root(table, std::string(origin));
    Sensor sensor;
    sensor.id = std::filesystem::path(origin).stem().string();
    sensor.name = root.text("name");
    sensor.source = root.text("source", "");
    const std::string kind = root.text("kind");
    if (root.has("model")) sensor.model = directory / root.text("model");
    sensor.intensity_noise = root.flag("intensity_noise", false);
    sensor.likely_drops = root.flag("likely_drops", false);
    if (root.has("most_lost_percent"))
        sensor.most_lost_percent = root.number("most_lost_percent", Sensor::kMostLost_percent);
    read_models(root, sensor);
    if (kind == "spinning") {
        SpinningHead head = read_spinning(root);
        sensor.scan_hz = root.section("spin").number("rate_hz", ranges::kScanRate_hz);
        sensor.rays = std::move(head);
    } else {
        sensor.scan_hz = root.number("scan_hz", ranges::kScanRate_hz);
        if (kind == "rosette")
            sensor.rays = read_rosette(root, sensor.scan_hz);
        else if (kind == "nodding")
            sensor.rays = read_nodding(root, sensor.scan_hz);
        else if (kind == "pinhole")
            sensor.rays = read_pinhole(root);
        else if (kind == "table")
            sensor.rays = read_table(root, directory, sensor.scan_hz);
        else
            throw ConfigError(std::string(origin) + ": kind \"" + kind +
                              "\" is not one of spinning, rosette, nodding, pinhole, table");
    }
    root.finish();
    return sensor;
}

Sensor Sensor::load(std::string_view name_or_path) {
    if (const auto* text = shipped(name_or_path))
        return parse(text->content, std::string(text->name) + ".toml");
    const std::filesystem::path path(name_or_path);
    if (!std::filesystem::exists(path))
        throw ConfigError("sensor \"" + std::string(name_or_path) + "\" is neither shipped (" +
                          known_names() + ") nor a file");
    return parse(read_text_file(path), path.string(), path.parent_path());
}

std::vector<std::string> Sensor::builtin_names() {
    std::vector<std::string> names;
    for (const auto& text : embedded::sensors()) names.emplace_back(text.name);
    return names;
}

std::string Sensor::builtin_text(std::string_view name) {
    if (const auto* text = shipped(name)) return std::string(text->content);
    throw ConfigError("no sensor \"" + std::string(name) + "\"; there are " + known_names());
}

}  // namespace citysplat::sim
