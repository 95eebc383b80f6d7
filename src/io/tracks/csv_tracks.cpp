#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "core/text.hpp"
#include "io/tracks/track_formats.hpp"
#include "io/trajectory/trajectory_formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>

/// Tracks as a table with a line of names. What esmini's dat2csv writes is one.
namespace citysplat::io {

namespace {

enum Role {
    kTime,
    kId,
    kName,
    kClass,
    kObject,
    kX,
    kY,
    kZ,
    kYaw,
    kHeading,
    kPitch,
    kRoll,
    kQx,
    kQy,
    kQz,
    kQw,
    kLength,
    kWidth,
    kHeight,
    kRoles
};

/// Names by role; of several that are there the first of this list counts.
const std::array<std::vector<std::string_view>, kRoles> kNames{{
    {"time", "time_s", "t", "timestamp", "gps_time", "seconds"},
    {"id", "track_id", "track", "object_id", "uuid"},
    {"name"},
    {"class", "type", "category", "label"},
    {"object"},
    {"x", "x_m", "easting", "east"},
    {"y", "y_m", "northing", "north"},
    {"z", "z_m", "altitude", "up"},
    {"yaw", "h"},
    {"heading"},
    {"pitch", "p"},
    {"roll", "r"},
    {"qx"},
    {"qy"},
    {"qz"},
    {"qw"},
    {"length", "length_m", "l"},
    {"width", "width_m", "w"},
    {"height", "height_m"},
}};

bool is_angle(std::size_t role) { return role >= kYaw && role <= kRoll; }

/// Cells of a line, blanks and quotes at their ends taken off. A quoted cell may hold the separator.
std::vector<std::string_view> cells_of(std::string_view line, char separator) {
    std::vector<std::string_view> cells;
    std::size_t at = 0;
    while (true) {
        bool quoted = false;
        std::size_t end = at;
        for (; end < line.size() && (quoted || line[end] != separator); ++end)
            if (line[end] == '"') quoted = !quoted;
        std::string_view cell = trimmed(line.substr(at, end - at));
        if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
            cell = cell.substr(1, cell.size() - 2);
        cells.push_back(cell);
        if (end >= line.size()) return cells;
        at = end + 1;
    }
}

class TrackTable {
  public:
    TrackTable(std::string_view header, const TrackRequest& request, std::uint64_t line)
        : request_(request), line_(line) {
        for (const char c : {',', ';', '\t'})
            if (header.find(c) != std::string_view::npos) {
                separator_ = c;
                break;
            }
        const auto names = cells_of(header, separator_);
        columns_ = names.size();
        column_.fill(-1);
        factor_.fill(1);
        for (std::size_t role = 0; role < kRoles; ++role) find(role, names);
        if (!has(kId) && has(kName)) std::swap(column_[kId], column_[kName]);
        for (const auto& [role, word] :
             {std::pair{kTime, "time"}, {kId, "id"}, {kX, "x"}, {kY, "y"}, {kZ, "z"}})
            if (!has(role))
                fail("no column \"" + std::string(word) + "\" in \"" + printable(header.substr(0, 200)) +
                     "\"");
        if (!has_quaternion() && !has(kYaw) && !has(kHeading))
            fail("no rotation in \"" + printable(header.substr(0, 200)) +
                 "\"; expected a column yaw, h, heading, or qx qy qz qw");
    }

    void take(std::string_view text, std::uint64_t line) {
        line_ = line;
        row_ = cells_of(text, separator_);
        // esmini ends its lines with a separator.
        if (row_.size() == columns_ + 1 && row_.back().empty()) row_.pop_back();
        if (row_.size() != columns_)
            fail(std::to_string(row_.size()) + " values; the header names " + std::to_string(columns_) +
                 " columns");
        Pose pose{{number(kX), number(kY), number(kZ)}, rotation()};
        pose.translation = pose.apply(-request_.options.reference_m);
        request_.boxes.add({cell(kId),
                            cell(kName),
                            cell(kClass),
                            cell(kObject),
                            {number(kLength), number(kWidth), number(kHeight)},
                            {number(kTime), pose},
                            line});
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw InputError(request_.path.string() + ": line " + std::to_string(line_) + ": " + what);
    }
    bool has(std::size_t role) const { return column_[role] >= 0; }
    bool has_quaternion() const { return has(kQx) && has(kQy) && has(kQz) && has(kQw); }

    void find(std::size_t role, const std::vector<std::string_view>& names) {
        for (const std::string_view wanted : kNames[role])
            for (std::size_t c = 0; c < names.size(); ++c) {
                std::string name = lower_case(names[c]);
                double factor = request_.options.angles == TrackOptions::AngleUnit::degrees && is_angle(role)
                                    ? exact::kRadPerDegree
                                    : 1;
                if (is_angle(role) && (name.ends_with("_deg") || name.ends_with("_rad"))) {
                    factor = name.ends_with("_deg") ? exact::kRadPerDegree : 1;
                    name.resize(name.size() - 4);
                }
                if (name != wanted) continue;
                if (has(role) && names[static_cast<std::size_t>(column_[role])] == names[c])
                    fail("the column \"" + printable(names[c]) + "\" is there twice");
                if (has(role)) continue;
                column_[role] = static_cast<int>(c);
                factor_[role] = factor;
            }
    }

    std::string_view cell(std::size_t role) const {
        return has(role) ? row_[static_cast<std::size_t>(column_[role])] : std::string_view();
    }
    double number(std::size_t role) const {
        if (!has(role)) return 0;
        const auto value = parse_number(cell(role));
        if (!value || !std::isfinite(*value))
            fail("\"" + printable(cell(role).substr(0, 40)) + "\" is not a number (column " +
                 std::string(kNames[role].front()) + ")");
        return *value * factor_[role];
    }
    /// An angle in degrees that is taken for radians is soon beyond one turn.
    double angle(std::size_t role) const {
        const double v = number(role);
        if (!(std::fabs(v) <= 2 * exact::kPi + 0.01))
            fail("the angle " + format_number(v) + " rad (column " + std::string(kNames[role].front()) +
                 ") is more than a turn; name the column ..._deg if it is in degrees");
        return v;
    }
    Quaternion rotation() const {
        if (has_quaternion()) return {number(kQx), number(kQy), number(kQz), number(kQw)};
        if (has(kYaw)) return from_yaw_pitch_roll(angle(kYaw), angle(kPitch), angle(kRoll));
        return from_heading(angle(kHeading), angle(kPitch), angle(kRoll));
    }

    const TrackRequest& request_;
    std::uint64_t line_;
    char separator_ = ' ';
    std::size_t columns_ = 0;
    std::array<int, kRoles> column_;
    std::array<double, kRoles> factor_;
    std::vector<std::string_view> row_;
};

}  // namespace

void read_csv_tracks(const TrackRequest& request) {
    request.boxes.set_record_kind("line");
    const std::string text = read_text_file(request.path);
    std::optional<TrackTable> table;
    for (const Line& line : Lines(text)) {
        if (line.number % 65536 == 0) request.cancel.check();
        const std::string_view content = trimmed(line.text);
        // esmini's tools put a line about version and road in front, some of them without the version.
        const bool of_esmini =
            !table && (content.starts_with("Version:") || content.starts_with("OpenDRIVE:"));
        if (content.empty() || content[0] == '#' || of_esmini) continue;
        if (!table)
            table.emplace(content, request, line.number);
        else
            table->take(content, line.number);
    }
    if (!table) throw InputError(request.path.string() + ": no line with the names of columns");
}

}  // namespace citysplat::io
