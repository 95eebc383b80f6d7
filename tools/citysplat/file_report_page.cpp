#include "citysplat/file_report.hpp"
#include "core/bytes.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>

namespace citysplat::cli {

namespace {

nlohmann::json vector_json(Vec3d v) { return {v.x, v.y, v.z}; }

nlohmann::json bounds_json(const FileReport& r) {
    const auto b = bounds_of(r);
    if (!b) return nullptr;
    return {{"min", vector_json(b->min)}, {"max", vector_json(b->max)}};
}

void add_classes(nlohmann::json& j, const Contents& contents, const ClassMap& map) {
    j["classes"] = j["class_names"] = nlohmann::json::object();
    for (const auto& [label, count] : contents.classes) {
        j["classes"][std::to_string(label)] = count;
        if (!map.classes().empty()) j["class_names"][std::to_string(label)] = map.at(label).name;
    }
}

nlohmann::json to_json(const FileReport& r) {
    nlohmann::json j{{"file", r.name},
                     {"format", r.info.format},
                     {"bytes", r.bytes},
                     {"made_by", r.info.made_by},
                     {"points", points_of(r)},
                     {"crs", r.info.crs},
                     {"crs_name", r.info.crs_name},
                     {"unit", r.info.unit},
                     {"metres_per_unit", r.info.metres_per_unit},
                     {"columns", r.info.columns},
                     {"has_gps_time", r.info.has_gps_time},
                     {"has_intensity", r.info.has_intensity},
                     {"has_label", r.info.has_label},
                     {"has_sensor", r.info.has_sensor},
                     {"has_instance", r.info.has_instance},
                     {"points_lost", r.info.points_lost + r.contents.damaged},
                     {"no_return", r.contents.no_return},
                     {"withheld", r.contents.withheld},
                     {"masked", masked_json(r.contents.masked)},
                     {"notes", r.info.notes}};
    j["bounds"] = bounds_json(r);
    add_classes(j, r.contents, *r.map);
    if (r.contents.time_begin_s <= r.contents.time_end_s) {
        j["gps_time"] = {r.contents.time_begin_s, r.contents.time_end_s};
        constexpr const char* kKinds[]{"unknown", "week_seconds", "adjusted_standard"};
        j["points_not_covered"] = r.contents.not_covered;
        j["gps_time_kind"] = kKinds[static_cast<std::size_t>(r.info.time_kind)];
    }
    return j;
}

std::string yes_no(std::initializer_list<std::pair<const char*, bool>> columns) {
    std::string have;
    for (const auto& [name, there] : columns)
        if (there) have += (have.empty() ? "" : ", ") + std::string(name);
    return have.empty() ? "positions only" : have;
}

/// ", from Tuesday 10:15:30", or ", from 2024-05-02 10:15:30 GPS": GPS clocks know no leap seconds.
std::string clock_text(PointFileInfo::TimeKind kind, double seconds) {
    using Kind = PointFileInfo::TimeKind;
    constexpr double kDay_s = 86400, kAdjusted_s = 1e9;
    if (kind == Kind::adjusted_standard) seconds += kAdjusted_s;
    const bool sensible = kind == Kind::adjusted_standard ? seconds < 1e10 : seconds < 7 * kDay_s;
    if (kind == Kind::unknown || !(seconds >= 0) || !sensible) return "";
    const int day = static_cast<int>(seconds / kDay_s), second = static_cast<int>(seconds - day * kDay_s);
    char text[80];
    if (kind == Kind::week_seconds) {
        constexpr const char* kDays[]{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
        std::snprintf(text, sizeof text, ", seconds of a week, from %s %02d:%02d:%02d", kDays[day],
                      second / 3600, second / 60 % 60, second % 60);
    } else {
        using namespace std::chrono;
        const year_month_day date{sys_days{year{1980} / January / 6} + days{day}};
        std::snprintf(text, sizeof text, ", from %d-%02u-%02u %02d:%02d:%02d GPS", int{date.year()},
                      unsigned{date.month()}, unsigned{date.day()}, second / 3600, second / 60 % 60,
                      second % 60);
    }
    return text;
}

void add_extent(std::string& out, const FileReport& r) {
    const auto b = bounds_of(r);
    if (!b) return;
    const Vec3d size = b->max - b->min;
    const double unit = r.info.metres_per_unit;
    const int decimals = unit == 0 ? 7 : 3;
    const auto axis = [&out](std::string_view name, double low, double high, int digits) {
        page_line(
            out, name,
            fixed(low, digits) + " to " + fixed(high, digits) + "  (" + fixed(high - low, digits) + ")");
    };
    axis("x", b->min.x, b->max.x, decimals);
    axis("y", b->min.y, b->max.y, decimals);
    axis("z", b->min.z, b->max.z, 3);
    const double area = size.x * size.y * unit * unit;
    if (area > 0 && r.contents.points)
        page_line(
            out, "density",
            fixed(static_cast<double>(r.contents.points) / area, 1) + " points per m² of the bounding box");
}

}  // namespace

void page_line(std::string& out, std::string_view name, const std::string& value) {
    constexpr std::size_t kWidth = 14;
    out += "  " + std::string(name) + std::string(name.size() < kWidth ? kWidth - name.size() : 1, ' ');
    for (const char c : value) out += c == '\n' ? "\n  " + std::string(kWidth, ' ') : std::string(1, c);
    out += "\n";
}

std::string fixed(double v, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, std::fabs(v) < 1e15 ? "%.*f" : "%.*g", decimals, v);
    return text;
}

nlohmann::json masked_json(const SensorMask::Counts& masked) {
    nlohmann::json j = nlohmann::json::object();
    for (std::size_t i = 0; i < masked.size(); ++i) j[SensorMask::kNames[i]] = masked[i];
    return j;
}

std::string masked_text(const SensorMask::Counts& masked) {
    constexpr const char* kTexts[SensorMask::kReasons]{"too near", "too far", "in a box",
                                                       "of the recording car"};
    std::string text;
    for (std::size_t i = 0; i < masked.size(); ++i)
        if (masked[i] > 0) text += (text.empty() ? "" : ", ") + format_count(masked[i]) + " " + kTexts[i];
    return text;
}

std::string page_of(const FileReport& r) {
    const PointFileInfo& i = r.info;
    const Contents& c = r.contents;
    std::string out = r.name + "\n";
    page_line(out, "format", i.format);
    page_line(out, "size", format_bytes(r.bytes));
    if (!i.made_by.empty()) page_line(out, "made by", i.made_by);
    page_line(out, "points", format_count(points_of(r)));
    if (const std::uint64_t lost = i.points_lost + c.damaged)
        page_line(out, "lost", format_count(lost) + " damaged or missing points");
    if (c.no_return) page_line(out, "no return", format_count(c.no_return) + " records without a position");
    if (const std::string masked = masked_text(c.masked); !masked.empty()) page_line(out, "masked", masked);
    if (c.withheld) page_line(out, "withheld", format_count(c.withheld) + " points marked as deleted");
    page_line(out, "system",
              i.crs.empty()        ? "not stated in the file"
              : i.crs_name.empty() ? i.crs.substr(0, 70)
                                   : i.crs_name);
    page_line(out, "unit", i.unit == "metre" && i.crs.empty() ? "metre (assumed)" : i.unit);
    add_extent(out, r);
    if (c.time_begin_s <= c.time_end_s)
        page_line(out, "GPS time",
                  fixed(c.time_begin_s, 3) + " to " + fixed(c.time_end_s, 3) + "  (" +
                      fixed(c.time_end_s - c.time_begin_s, 3) + " s" +
                      clock_text(i.time_kind, c.time_begin_s) + ")");
    if (i.has_intensity && c.points)
        page_line(out, "intensity",
                  std::to_string(c.intensity_min) + " to " + std::to_string(c.intensity_max) + " of 65535");
    page_line(out, "has",
              yes_no({{"GPS time", i.has_gps_time},
                      {"intensity", i.has_intensity},
                      {"classes", i.has_label},
                      {"instances", i.has_instance},
                      {"sensor positions", i.has_sensor}}));
    std::string columns;
    for (const auto& name : i.columns) columns += (columns.empty() ? "" : " ") + name;
    if (!columns.empty()) page_line(out, "columns", columns);
    const bool named = !r.map->classes().empty();
    for (const auto& [label, count] : c.classes)
        page_line(out, "class " + std::to_string(label),
                  format_count(count) + "  (" +
                      fixed(100 * static_cast<double>(count) / static_cast<double>(c.points), 1) + " %)" +
                      (named ? "  " + r.map->at(label).name : ""));
    if (!named && !c.classes.empty()) page_line(out, "note", "--classes says what the classes are called");
    for (const auto& note : i.notes) page_line(out, "note", note);
    return out;
}

nlohmann::json json_of(const std::vector<FileReport>& reports, const FileReport& all,
                       const std::vector<std::string>& errors) {
    nlohmann::json files = nlohmann::json::array();
    for (const FileReport& r : reports) files.push_back(to_json(r));
    const bool one_format = all.info.format.find('\n') == std::string::npos;
    nlohmann::json j = files.size() == 1 && errors.empty() ? files[0] : nlohmann::json::object();
    j["points"] = points_of(all);
    j["points_lost"] = all.info.points_lost + all.contents.damaged;
    j["format"] = one_format ? all.info.format : "several";
    j["bounds"] = bounds_json(all);
    add_classes(j, all.contents, all.map ? *all.map : ClassMap());
    j["files"] = std::move(files);
    j["errors"] = errors;
    return j;
}

}  // namespace citysplat::cli
