#include "sim/sensor.hpp"

#include "core/embedded.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "sim/ray_table.hpp"
#include "sim/toml_section.hpp"

#include <cmath>

namespace citysplat::sim {

namespace {

constexpr double kRadPerDeg = exact::kPi / 180;

Quadratic quadratic(Section& section, std::string_view key) {
    const std::vector<double> v = section.numbers(key);
    if (v.size() > 3) section.fail(key, "has at most three coefficients");
    return {v.size() > 0 ? v[0] : 0, v.size() > 1 ? v[1] : 0, v.size() > 2 ? v[2] : 0};
}

std::vector<Beam> read_beams(Section beams) {
    std::vector<double> elevations = beams.numbers("elevation_deg");
    if (elevations.empty()) {
        const std::uint32_t n = beams.count("count");
        const double first = beams.number("first_deg"), last = beams.number("last_deg", first);
        for (std::uint32_t i = 0; i < n; ++i)
            elevations.push_back(n == 1 ? first : first + (last - first) * i / (n - 1));
    }
    const auto column = [&](std::string_view key) {
        std::vector<double> v = beams.numbers(key);
        if (v.empty()) v.assign(elevations.size(), 0);
        if (v.size() != elevations.size())
            throw ConfigError(beams.where() + ": \"" + std::string(key) + "\" has " +
                              std::to_string(v.size()) + " entries for " + std::to_string(elevations.size()) +
                              " beams");
        return v;
    };
    const auto azimuths = column("azimuth_deg"), times = column("time_us");
    beams.finish();
    std::vector<Beam> result;
    for (std::size_t i = 0; i < elevations.size(); ++i)
        result.push_back({elevations[i] * kRadPerDeg, azimuths[i] * kRadPerDeg, times[i] * 1e-6});
    return result;
}

SpinningHead read_spinning(Section& root) {
    SpinningHead head{read_beams(root.section("beams")), {}};
    Section spin = root.section("spin");
    const double rate_hz = spin.positive("rate_hz");
    const std::uint32_t per_turn = spin.count("columns_per_turn");
    const double from_deg = spin.number("from_deg", 0.0), to_deg = spin.number("to_deg", from_deg + 360);
    const double sign = spin.text("sense", "counterclockwise") == "clockwise" ? -1 : 1;
    spin.finish();
    const double step_deg = 360.0 / per_turn;
    if (!(to_deg > from_deg) || to_deg - from_deg > 360)
        throw ConfigError(spin.where() + ": from_deg … to_deg must span more than 0 and at most 360");
    // A full turn does not repeat its first column; a sector has a column on both ends.
    const bool full = to_deg - from_deg == 360;
    const auto columns =
        static_cast<std::uint32_t>(std::floor((to_deg - from_deg) / step_deg + 1e-6)) + (full ? 0 : 1);
    head.pattern = {static_cast<std::uint32_t>(head.beams.size()), columns, sign * from_deg * kRadPerDeg,
                    sign * step_deg * kRadPerDeg, 1 / (rate_hz * per_turn)};
    for (const Beam& beam : head.beams)
        if (beam.time_s < 0 || beam.time_s > head.pattern.column_time_s)
            throw ConfigError(root.where() + ": [beams]: a time_us is not within the " +
                              std::to_string(head.pattern.column_time_s * 1e6) + " µs of a column");
    return head;
}

RosettePattern read_rosette(Section& root, double scan_hz) {
    Section s = root.section("rosette");
    const double pulses = s.positive("pulses_per_second");
    RosettePattern p{static_cast<std::uint32_t>(pulses / scan_hz + 0.5),
                     s.count("lines", 1.0),
                     1 / pulses,
                     s.number("first_hz"),
                     s.number("second_hz"),
                     s.positive("horizontal_deg") * kRadPerDeg / 2,
                     s.positive("vertical_deg") * kRadPerDeg / 2,
                     s.number("line_spacing_deg", 0.0) * kRadPerDeg};
    s.finish();
    return p;
}

NoddingPattern read_nodding(Section& root, double scan_hz) {
    Section s = root.section("nodding");
    const double pulses = s.positive("pulses_per_second");
    NoddingPattern p{static_cast<std::uint32_t>(pulses / scan_hz + 0.5),
                     s.count("lines", 1.0),
                     1 / pulses,
                     s.number("turn_hz"),
                     s.number("nod_hz"),
                     s.number("low_deg") * kRadPerDeg,
                     s.number("high_deg") * kRadPerDeg,
                     s.number("line_spacing_deg", 0.0) * kRadPerDeg};
    s.finish();
    return p;
}

PinholePattern read_pinhole(Section& root) {
    Section s = root.section("pinhole");
    const auto tangent = [&](std::string_view key) {
        const double degrees = s.positive(key);
        if (degrees >= 170) throw ConfigError(s.where() + ": \"" + std::string(key) + "\" must be below 170");
        const exact::SinCos half = exact::sin_cos(degrees / 2 * kRadPerDeg);
        return half.sin / half.cos;
    };
    PinholePattern p{s.count("columns"), s.count("rows"), tangent("horizontal_deg"), tangent("vertical_deg")};
    s.finish();
    return p;
}

void read_models(Section& root, Sensor& sensor) {
    Section range = root.section("range");
    sensor.min_range_m = range.number("min_m", 0.0);
    sensor.max_range_m = range.positive("max_m");
    range.finish();
    if (sensor.min_range_m < 0 || sensor.min_range_m >= sensor.max_range_m || sensor.max_range_m > 10000)
        throw ConfigError(range.where() + ": needs 0 <= min_m < max_m <= 10000");

    Section beam = root.section("beam");
    sensor.divergence_rad = beam.number("divergence_mrad", 0.0) * 1e-3;
    beam.finish();

    Section error = root.section("error");
    sensor.error = {quadratic(error, "bias_m"), quadratic(error, "sigma_m")};
    error.finish();

    Section intensity = root.section("intensity");
    sensor.intensity = {static_cast<int>(intensity.number("incidence_power", 0.0)),
                        static_cast<int>(intensity.number("range_power", 0.0))};
    intensity.finish();
    if (sensor.intensity.incidence_power < 0 || sensor.intensity.incidence_power > 8 ||
        sensor.intensity.range_power < 0 || sensor.intensity.range_power > 8)
        throw ConfigError(intensity.where() + ": powers are whole numbers from 0 to 8");

    Section drop = root.section("drop");
    sensor.drop = {drop.number("probability", 0.0), drop.number("max_incidence_deg", 90.0)};
    drop.finish();
    if (sensor.drop.probability < 0 || sensor.drop.probability > 1)
        throw ConfigError(drop.where() + ": probability must be from 0 to 1");
}

std::string known_names() {
    std::string known;
    for (const auto& name : Sensor::builtin_names()) known += (known.empty() ? "" : ", ") + name;
    return known;
}

}  // namespace

Sensor Sensor::parse(std::string_view text, std::string_view origin, const std::filesystem::path& directory) {
    const toml::table table = parse_toml(text, origin);
    Section root(table, std::string(origin));
    Sensor sensor;
    sensor.id = std::filesystem::path(origin).stem().string();
    sensor.name = root.text("name");
    sensor.source = root.text("source", "");
    const std::string kind = root.text("kind");
    read_models(root, sensor);
    if (kind == "spinning") {
        SpinningHead head = read_spinning(root);
        sensor.scan_hz = root.section("spin").number("rate_hz");
        sensor.rays = std::move(head);
    } else {
        sensor.scan_hz = root.positive("scan_hz");
        if (kind == "rosette")
            sensor.rays = read_rosette(root, sensor.scan_hz);
        else if (kind == "nodding")
            sensor.rays = read_nodding(root, sensor.scan_hz);
        else if (kind == "pinhole")
            sensor.rays = read_pinhole(root);
        else if (kind == "table")
            sensor.rays = read_ray_table(directory / root.text("table"));
        else
            throw ConfigError(std::string(origin) + ": kind \"" + kind +
                              "\" is not one of spinning, rosette, nodding, pinhole, table");
    }
    root.finish();
    return sensor;
}

Sensor Sensor::load(std::string_view name_or_path) {
    for (const auto& text : embedded::sensors())
        if (text.name == name_or_path) return parse(text.content, std::string(text.name) + ".toml");
    const std::filesystem::path path(name_or_path);
    if (!std::filesystem::is_regular_file(path))
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
    for (const auto& text : embedded::sensors())
        if (text.name == name) return std::string(text.content);
    throw ConfigError("no sensor \"" + std::string(name) + "\"; there are " + known_names());
}

}  // namespace citysplat::sim
