#include "sim/uav/uav_parameters.hpp"

#include "core/embedded.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/toml_section.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace citysplat::embedded {
std::span<const Text> uavs();
}

namespace citysplat::sim {

namespace {

constexpr NumberRange kFrequency{0.01, 300, "rad/s"}, kDamping{0.1, 5}, kError{0, 10};

Vec3d three(Section& s, std::string_view key, const NumberRange& range) {
    const std::vector<double> v = s.numbers(key, range);
    if (v.size() != 3) s.fail(key, v.empty() ? "is missing" : "has three numbers");
    return {v[0], v[1], v[2]};
}

Response response(Section& s, const std::string& name) {
    return {s.number(name + "frequency_rad_s", kFrequency), s.number(name + "damping", kDamping)};
}

}  // namespace

double UavParameters::hover_speed_rad_s() const {
    return std::sqrt(mass_kg * kGravity_m_s2 / (4 * thrust_n_s2));
}

double UavParameters::most_turn_rad_s2() const {
    const double hover = hover_speed_rad_s() * hover_speed_rad_s();
    const double room =
        std::min(hover - least_speed_rad_s * least_speed_rad_s, most_speed_rad_s * most_speed_rad_s - hover);
    return 0.5 * 4 * torque_nm_s2 * room / inertia_kg_m2.z;
}

UavParameters UavParameters::parse(std::string_view toml, std::string_view origin) {
    const toml::table table = parse_toml(toml, std::string(origin));
    Section root(table, std::string(origin));
    UavParameters p{};
    p.name = root.text("name", std::string(origin));
    root.text("source", "");
    Section body = root.section("body"), motor = root.section("motor"), control = root.section("control"),
            imu = root.section("imu");
    p.mass_kg = body.number("mass_kg", {0.01, 1000, "kg"});
    p.inertia_kg_m2 = three(body, "inertia_kg_m2", {1e-7, 1000, "kg m²"});
    p.size_m = three(body, "size_m", {0.01, 100, "m"});
    p.drag_n_s_m = body.number("drag_n_s_m", {0, 100, "N s/m"}, 0.0);
    p.arm_m = motor.number("arm_m", {0.01, 100, "m"});
    p.thrust_n_s2 = motor.number("thrust_n_s2", {1e-12, 10, "N s²"});
    p.torque_nm_s2 = motor.number("torque_nm_s2", {1e-14, 10, "N m s²"});
    p.most_speed_rad_s = motor.number("most_speed_rad_s", {1, 1e5, "rad/s"});
    p.least_speed_rad_s = motor.number("least_speed_rad_s", {0, 1e5, "rad/s"}, 0.0);
    p.motor = response(motor, "");
    p.position = response(control, "position_");
    p.attitude = response(control, "attitude_");
    p.position_integral = control.number("position_integral", {0, 1}, 0.0);
    p.most_tilt_rad = control.number("most_tilt_deg", {1, 80, "degrees"}, 35.0) * exact::kRadPerDegree;
    p.most_velocity_m_s = control.number("most_velocity_m_s", {0.01, 100, "m/s"}, 5.0);
    p.most_acceleration_m_s2 = control.number("most_acceleration_m_s2", {0.01, 100, "m/s²"}, 6.0);
    p.imu_rate_hz = imu.number("rate_hz", {1, 1000, "Hz"}, 200.0);
    p.imu.turn_density = imu.number("turn_density", kError, 0.0);
    p.imu.turn_walk = imu.number("turn_walk", kError, 0.0);
    p.imu.force_density = imu.number("force_density", kError, 0.0);
    p.imu.force_walk = imu.number("force_walk", kError, 0.0);
    for (const Section* s : {&body, &motor, &control, &imu}) s->finish();
    root.finish();
    const double hover = p.hover_speed_rad_s();
    if (!(hover > p.least_speed_rad_s && hover < 0.95 * p.most_speed_rad_s))
        motor.fail("most_speed_rad_s",
                   "must leave room above hovering, which takes " + format_number(hover) + " rad/s");
    if (1000 / p.imu_rate_hz != std::floor(1000 / p.imu_rate_hz))
        imu.fail("rate_hz", "must divide 1000 Hz, at which the motion is computed");
    if (p.motor.frequency_rad_s < 2 * p.attitude.frequency_rad_s)
        control.fail("attitude_frequency_rad_s",
                     "is too quick for the motors: at most half of their frequency");
    if (p.attitude.frequency_rad_s < 4 * p.position.frequency_rad_s)
        control.fail("position_frequency_rad_s", "is too quick: at most a quarter of that of the attitude");
    return p;
}

UavParameters UavParameters::load(std::string_view name_or_path) {
    for (const auto& text : embedded::uavs())
        if (text.name == name_or_path) return parse(text.content, text.name);
    if (!name_or_path.ends_with(".toml"))
        throw ConfigError("no UAV is named \"" + std::string(name_or_path) +
                          "\"; give one of the shipped ones or a TOML file");
    const std::filesystem::path path(name_or_path);
    return parse(read_text_file(path), path.string());
}

std::vector<std::string> UavParameters::builtin_names() {
    std::vector<std::string> names;
    for (const auto& text : embedded::uavs()) names.emplace_back(text.name);
    return names;
}

}  // namespace citysplat::sim
