#pragma once

#include "sim/drive/simulation.hpp"
#include "sim/output/scan_writer.hpp"
#include "sim/scan/scanner.hpp"

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
    ScanWriterOptions output;  ///< `directory` is set by the caller
};

/// A drive with one or more sensors, as a TOML file says (docs/sensors.md). Relative paths start at the file.
struct Scenario {
    std::filesystem::path trajectory;
    std::vector<ScenarioSensor> sensors;

    /// Throws ConfigError naming file and key.
    static Scenario load(const std::filesystem::path& path);
};

/// Mount from lever arm (metres) and yaw, pitch, roll (degrees); either may be empty. Throws UsageError
/// naming `what` when the count is wrong.
Pose mount_from(const std::vector<double>& lever_m, const std::vector<double>& yaw_pitch_roll_deg,
                const std::string& what);

}  // namespace citysplat::sim
