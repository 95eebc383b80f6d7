#pragma once

#include "core/number_range.hpp"
#include "sim/drive/simulation.hpp"
#include "sim/output/scan_writer.hpp"
#include "sim/scan/scanner.hpp"
#include "sim/traffic/scenario_things.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::sim {

/// One sensor of a scenario and where its scans go.
struct ScenarioSensor {
    std::string name;  ///< directory below the output directory
    SensorRun run;
    Schedule schedule;
    ScanWriterOptions output;            ///< `directory` is set by the caller
    std::uint32_t vehicle = kNoVehicle;  ///< number of the [[vehicle]] that it is mounted on
};

/// A drive with one or more sensors, as a TOML file says (docs/sensors.md, docs/scenarios.md). Relative paths
/// start at the file.
struct Scenario {
    std::filesystem::path trajectory;  ///< of the sensors that are on no vehicle
    std::vector<ScenarioSensor> sensors;
    ScenarioThings things;  ///< what stands and moves besides the city
    std::string classes;    ///< class map by name or path; empty: the city's
    double smooth_s = 0;    ///< knots of the splines that sensors move along; 0: straight between poses
    std::string clock = "unknown", compression = "none";  ///< of a bag: BagOptions

    const std::filesystem::path& trajectory_of(const ScenarioSensor& sensor) const {
        return sensor.vehicle == kNoVehicle ? trajectory : things.vehicles[sensor.vehicle].trajectory;
    }

    /// Whether every sensor and vehicle must say where it goes. In a session it may be told later.
    enum class Ways { known, may_be_told };
    /// Throws ConfigError naming file and key.
    static Scenario load(const std::filesystem::path& path, Ways ways = Ways::known);
};

/// Between the knots of a smooth path.
inline constexpr NumberRange kSmooth_s{0.005, 10, "s"};

/// Mount from lever arm (metres) and yaw, pitch, roll (degrees); either may be empty. Throws UsageError
/// naming `what` when the count is wrong.
Pose mount_from(const std::vector<double>& lever_m, const std::vector<double>& yaw_pitch_roll_deg,
                const std::string& what);

}  // namespace citysplat::sim
