#pragma once

#include "core/number_range.hpp"
#include "sim/sensor/beam_hd.hpp"
#include "sim/sensor/firing_hd.hpp"
#include "sim/sensor/sensor_model_hd.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
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

/// How wide the pulses of a sensor are, and which of their echoes it reports. The width is a fact of the data
/// sheet; it counts when `returns` asks for it.
struct BeamShape {
    double divergence_rad = 0;  ///< full angle, where a Gaussian beam has fallen to 1/e²; 0: not known
    ReturnMode returns = ReturnMode::line;
    std::uint32_t rays = 7;  ///< sub-rays of a pulse: 7 or 19
    double resolution_m =
        0.75;  ///< echoes that are no farther apart are one: half the length of a 5 ns pulse

    /// Which echoes are reported: "line", "first", "strongest", "last" or "dual". Throws ConfigError, naming
    /// `where`, for another word, and when the width is not known.
    void set_returns(std::string_view word, const std::string& where);
};

/// A LiDAR or depth camera, as its TOML file says (docs/sensors.md).
struct Sensor {
    std::string id;      ///< file stem: "hdl-64e"
    std::string name;    ///< "Velodyne HDL-64E"
    std::string source;  ///< where the numbers come from, and what was assumed
    double scan_hz = 10;
    double min_range_m = 0.5, max_range_m = 100;
    BeamShape beam;
    RangeError error;
    IntensityModel intensity;
    DropModel drop;
    std::filesystem::path model;   ///< what learn-sensor found out about it; empty: nothing
    bool intensity_noise = false;  ///< intensities scatter as the model found it
    bool likely_drops = false;     ///< what is lost is what the model finds most likely, instead of drawn
    /// The same, and up to this share of the real returns may be lost for it; at most kMostLost_percent.
    std::optional<double> most_lost_percent;
    static constexpr NumberRange kMostLost_percent{0, 10, "%"};
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
