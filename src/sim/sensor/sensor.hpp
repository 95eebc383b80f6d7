#pragma once

#include "sim/sensor/firing_hd.hpp"
#include "sim/sensor/sensor_model_hd.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace citysplat::sim {

/// Rays listed one by one (CSV with time_s, azimuth_deg, elevation_deg and optionally beam), cut into scans.
/// It begins anew with the scan after its last one: its period is a whole number of scans.
struct RayTable {
    std::vector<Firing> firings;         ///< scan after scan; numbers and times are those within the scan
    std::vector<std::size_t> scan_ends;  ///< where in `firings` each scan ends; a scan may be empty

    std::span<const Firing> scan(std::uint64_t index) const;
    std::size_t most_rays() const;  ///< of a scan
};

struct SpinningHead {
    std::vector<Beam> beams;
    SpinningPattern pattern;
    std::vector<float> gain;  ///< of each beam: how bright it sees a surface; empty: all alike
};

/// A LiDAR or depth camera, as its TOML file says (docs/sensors.md).
struct Sensor {
    std::string id;      ///< file stem: "hdl-64e"
    std::string name;    ///< "Velodyne HDL-64E"
    std::string source;  ///< where the numbers come from, and what was assumed
    double scan_hz = 10;
    double min_range_m = 0.5, max_range_m = 100;
    double divergence_rad = 0;  ///< full angle of the beam; nothing uses it yet, rays are lines
    RangeError error;
    IntensityModel intensity;
    DropModel drop;
    std::filesystem::path model;  ///< what learn-sensor found out about it; empty: nothing
    std::variant<SpinningHead, RosettePattern, NoddingPattern, PinholePattern, RayTable> rays;

    std::uint32_t rays_per_scan() const;
    /// Whether every scan has the same directions.
    bool repeats() const;

    /// A shipped sensor by name (in upper or lower case), or the TOML file at that path. Throws ConfigError
    /// that names file and key.
    static Sensor load(std::string_view name_or_path);
    /// `directory` is where ray tables and learned models are looked for.
    static Sensor parse(std::string_view toml, std::string_view origin,
                        const std::filesystem::path& directory = {});
    static std::vector<std::string> builtin_names();
    static std::string builtin_text(std::string_view name);  ///< its TOML; throws ConfigError
};

/// The firings of scan `scan` in an order in which neighbours in space are neighbours in the list (runs of
/// 16 columns of one beam), so that packets of consecutive rays are coherent.
void fire(const Sensor& sensor, std::uint64_t scan, std::vector<Firing>& out);

/// A list as a plan. It must stay as long as the plan is used.
FiringPlan plan_of(std::span<const Firing> firings);
/// The same firings as fire() gives, by formula where the pattern has one. Otherwise they are put into
/// `list`, which is left alone when it is filled and the sensor repeats().
FiringPlan plan_firings(const Sensor& sensor, std::uint64_t scan, std::vector<Firing>& list);

}  // namespace citysplat::sim
