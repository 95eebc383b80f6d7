#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/text.hpp"
#include "io/points/text_table.hpp"
#include "io/trajectory/trajectory_formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace citysplat::io {

namespace {

enum PoseRole { kTime, kX, kY, kZ, kRoll, kPitch, kYaw, kHeading, kQx, kQy, kQz, kQw, kPoseRoles };

struct RoleNames {
    std::string_view role;
    std::initializer_list<std::string_view> names;
};
const std::array<RoleNames, kPoseRoles> kNames{{
    {"time", {"time", "time_s", "t", "gps_time", "gpstime", "timestamp", "seconds"}},
    {"x", {"x", "x_m", "e", "east", "easting"}},
    {"y", {"y", "y_m", "n", "north", "northing"}},
    {"z", {"z", "z_m", "alt", "altitude", "height", "up"}},
    {"roll", {"roll"}},
    {"pitch", {"pitch"}},
    {"yaw", {"yaw"}},
    {"heading", {"heading", "azimuth"}},
    {"qx", {"qx"}},
    {"qy", {"qy"}},
    {"qz", {"qz"}},
    {"qw", {"qw"}},
}};

std::vector<std::string> split(std::string_view line) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : line) {
        if (c == '\r' || c == '"') continue;
        if (c == ',' || c == ';' || c == '\t' || c == ' ') {
            if (!word.empty() || c == ',' || c == ';') words.push_back(std::move(word));
            word.clear();
        } else {
            word += c;
        }
    }
    if (!word.empty()) words.push_back(std::move(word));
    return words;
}

/// Which column holds what, from the header line.
struct CsvLayout {
    std::array<int, kPoseRoles> column;
    std::array<double, kPoseRoles> factor;  ///< to radians
    std::size_t columns = 0;

    bool has(PoseRole role) const { return column[role] >= 0; }
    bool has_quaternion() const { return has(kQx) && has(kQy) && has(kQz) && has(kQw); }
};

void find_role(std::size_t role, const std::vector<std::string>& names, const TrajectoryOptions& options,
               const std::string& where, CsvLayout& layout) {
    const auto given = options.columns.find(std::string(kNames[role].role));
    for (std::size_t c = 0; c < names.size(); ++c) {
        std::string name = lower_case(names[c]);
        double factor = options.angles == TrajectoryOptions::AngleUnit::degrees   ? exact::kRadPerDegree
                        : options.angles == TrajectoryOptions::AngleUnit::radians ? 1.0
                                                                                  : 0.0;
        if (name.ends_with("_deg")) factor = exact::kRadPerDegree;
        if (name.ends_with("_rad")) factor = 1.0;
        const bool angle = role >= kRoll && role <= kHeading;
        if (angle && (name.ends_with("_deg") || name.ends_with("_rad"))) name.resize(name.size() - 4);
        const auto& known = kNames[role].names;
        const bool match = given != options.columns.end()
                               ? names[c] == given->second
                               : std::find(known.begin(), known.end(), name) != known.end();
        if (!match) continue;
        if (const int before = layout.column[role]; before >= 0) {
            if (lower_case(names[static_cast<std::size_t>(before)]) == lower_case(names[c]))
                throw InputError(where + ": the column \"" + names[c] + "\" is there twice");
            continue;  // the first name found wins
        }
        layout.column[role] = static_cast<int>(c);
        layout.factor[role] = angle ? factor : 1.0;
    }
}

CsvLayout layout_of(const std::string& line, const TrajectoryOptions& options, const std::string& where) {
    const std::vector<std::string> names = split(line);
    CsvLayout layout;
    layout.column.fill(-1);
    layout.factor.fill(1);
    layout.columns = names.size();
    for (const auto& [role, name] : options.columns)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw InputError(where + ": no column \"" + name + "\" for " + role + " in \"" + line + "\"");
    for (std::size_t role = 0; role < kPoseRoles; ++role) find_role(role, names, options, where, layout);
    for (const PoseRole role : {kTime, kX, kY, kZ})
        if (!layout.has(role))
            throw InputError(where + ": no column for " + std::string(kNames[role].role) + " in \"" + line +
                             "\"");
    const bool quaternion = layout.has_quaternion();
    if (!quaternion && !layout.has(kYaw) && !layout.has(kHeading))
        throw InputError(where + ": no rotation in \"" + line + "\"; expected qx qy qz qw, yaw or heading");
    for (const PoseRole role : {kRoll, kPitch, kYaw, kHeading})
        if (layout.has(role) && layout.factor[role] == 0 && !quaternion)
            throw InputError(where + ": the unit of \"" +
                             names[static_cast<std::size_t>(layout.column[role])] +
                             "\" is not known; name it ..._deg or ..._rad, or give the angle unit");
    return layout;
}

Pose pose_of(const CsvLayout& layout, const std::vector<double>& row, const std::string& where) {
    const auto value = [&](PoseRole role) {
        return layout.has(role) ? row[static_cast<std::size_t>(layout.column[role])] * layout.factor[role]
                                : 0.0;
    };
    const auto angle = [&](PoseRole role) {
        // Headings that are not wrapped count whole turns; vehicles do not roll over.
        const int most_turns = role == kYaw || role == kHeading ? 1000 : 1;
        if (!(std::fabs(value(role)) <= 2 * exact::kPi * most_turns))
            throw InputError(where + ": " + std::string(kNames[role].role) + " " +
                             format_number(value(role)) + " rad; expected at most " +
                             std::to_string(most_turns) + (most_turns == 1 ? " turn" : " turns") +
                             "; is the unit right?");
        return value(role);
    };
    Pose pose{{value(kX), value(kY), value(kZ)}, {}};
    if (layout.has_quaternion())
        pose.rotation = {value(kQx), value(kQy), value(kQz), value(kQw)};
    else if (layout.has(kHeading))
        pose.rotation = from_heading(angle(kHeading), angle(kPitch), angle(kRoll));
    else
        pose.rotation = from_yaw_pitch_roll(angle(kYaw), angle(kPitch), angle(kRoll));
    return pose;
}

}  // namespace

std::vector<StampedPose> read_csv_poses(const std::filesystem::path& path, const TrajectoryOptions& options) {
    const std::string text = read_text_file(path), name = path.string();
    std::optional<CsvLayout> layout;
    std::vector<StampedPose> poses;
    for (const auto& [whole_line, number, next, ended] : Lines(text)) {
        const std::string line(whole_line.substr(0, whole_line.find_last_not_of(" \r") + 1));
        const std::string where = name + ": line " + std::to_string(number);
        if (line.empty() || line[0] == '#') continue;
        if (!layout) {
            layout = layout_of(line, options, where);
            continue;
        }
        std::vector<double> row(layout->columns);
        const std::size_t got = parse_row(line, row, name, number);
        if (got != layout->columns)
            throw InputError(where + ": " + std::to_string(got) + " numbers; the header names " +
                             std::to_string(layout->columns) + " columns");
        poses.push_back({row[static_cast<std::size_t>(layout->column[kTime])], pose_of(*layout, row, where)});
    }
    return poses;
}

}  // namespace citysplat::io
