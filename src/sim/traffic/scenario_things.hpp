#pragma once

#include "io/tracks/track_file.hpp"
#include "sim/traffic/object_shape.hpp"
#include "sim/traffic/obstacle.hpp"

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace citysplat {
class Section;
}

/// The tables of a scenario file about what stands or moves (docs/scenarios.md), as they are written there.
/// Where an object is named, it is one of [[object]] or of a bank: BankName.
namespace citysplat::sim {

/// "bank:FOLDER#NAME", an object of a bank, or "bank:FOLDER": the one that suits best.
struct BankName {
    std::filesystem::path folder;
    std::string object;  ///< empty: to be chosen

    /// Nothing when the text does not begin with "bank:".
    static std::optional<BankName> parse(const std::string& text);
    std::string text() const;
};

struct ScenarioActor {
    std::string name, object, class_name;  ///< class_name: name or number; empty: the object's
    std::filesystem::path track{};         ///< a trajectory; empty: it stands at `place`
    Pose place{};
    std::optional<std::uint16_t> instance{};
    double from_s = -std::numeric_limits<double>::infinity(), to_s = std::numeric_limits<double>::infinity();
    bool on_ground = false;
};

struct ScenarioVehicle {
    std::string name, object{}, class_name{};  ///< object: empty when it has no body
    std::filesystem::path trajectory{};        ///< empty: a session is told it
    Pose body_from_object{};                   ///< where the object sits in the frame of the trajectory
    std::optional<std::uint16_t> instance{};
    bool sees_itself = false;
};

struct ScenarioTraffic {
    std::filesystem::path file{};
    TrackOptions options{};
    /// By class of the file, "*" for the others; what is in neither is a box of its track's size.
    std::map<std::string, std::string> objects{};
    /// From classes of the file to classes of the map.
    std::map<std::string, std::string> classes{};
    double reflectance = kUsualReflectance;  ///< of boxes
    bool on_ground = false;
    bool fit = false;  ///< meshes and objects of a bank are stretched to the sizes of the tracks
};

struct ScenarioObstacle {
    ObstacleField field;
    std::string name, object;
    bool has_start = false;  ///< otherwise they start with the drive
};

struct ScenarioSnapshots {
    std::filesystem::path folder{};  ///< of snapshots, or a city that has them; empty: the city of the run
    double time_offset_s = 0;
    double repeat_s = 0;  ///< 0: played once
};

struct ScenarioThings {
    std::vector<ObjectDescription> objects;
    std::vector<ScenarioActor> actors;
    std::vector<ScenarioVehicle> vehicles;
    std::vector<ScenarioTraffic> traffic;
    std::vector<ScenarioObstacle> obstacles;
    std::vector<ScenarioSnapshots> snapshots;
    std::uint64_t seed = 1;  ///< of what is chosen from a bank

    bool empty() const {
        return actors.empty() && vehicles.empty() && traffic.empty() && obstacles.empty() &&
               snapshots.empty();
    }
};

/// Reads [[object]], [[actor]], [[traffic]], [[obstacle]] and [[snapshots]]. Throws ConfigError naming file,
/// line and key.
void read_things(Section& root, const std::filesystem::path& directory, ScenarioThings& things);
/// One table of [[vehicle]] but for its sensors and Section::finish().
ScenarioVehicle read_vehicle(Section& section, const std::filesystem::path& directory);
/// Throws ConfigError when something names an object that is not there, or two things have one name.
void check_things(const ScenarioThings& things, const std::string& file);

/// Position in metres and yaw, pitch, roll in degrees, as two keys of a table.
Pose read_pose(Section& section, const char* position_key, const char* angles_key);

}  // namespace citysplat::sim
