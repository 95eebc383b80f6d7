#include "sim/sensor/ray_table.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::sim {

namespace {

std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> fields;
    while (true) {
        const std::size_t comma = line.find(',');
        fields.push_back(trimmed(line.substr(0, comma)));
        if (comma == std::string_view::npos) return fields;
        line.remove_prefix(comma + 1);
    }
}

struct Columns {
    std::size_t time, azimuth, elevation, beam;
    static constexpr std::size_t kNone = SIZE_MAX;

    Columns(const std::vector<std::string_view>& header, const std::string& where) {
        const auto find = [&](std::string_view name) {
            const auto at = std::find(header.begin(), header.end(), name);
            return at == header.end() ? kNone : static_cast<std::size_t>(at - header.begin());
        };
        time = find("time_s"), azimuth = find("azimuth_deg"), elevation = find("elevation_deg");
        beam = find("beam");
        if (time == kNone || azimuth == kNone || elevation == kNone)
            throw InputError(where + ": the first line must name time_s, azimuth_deg and elevation_deg");
    }
};

/// No table lasts longer, so that the number of its scans is bounded; a turning head may count on.
constexpr NumberRange kTime_s{0, 10'000, "s"}, kAzimuth_deg{-1e7, 1e7, "degrees"},
    kElevation_deg{-90, 90, "degrees"}, kBeam{0, 65535};

/// A row of the table, and where it is.
class Row {
  public:
    Row(std::string_view line, std::string where) : fields_(split(line)), where_(std::move(where)) {}

    double number(std::size_t column, const NumberRange& range) const {
        const auto value = column < fields_.size() ? parse_number(fields_[column]) : std::nullopt;
        if (!value || !range.contains(*value))
            fail("field " + std::to_string(column + 1) + " is " +
                 (column < fields_.size() ? "\"" + std::string(fields_[column].substr(0, 40)) + "\""
                                          : "missing") +
                 "; expected a number " + range.text());
        return *value;
    }
    [[noreturn]] void fail(const std::string& why) const { throw InputError(where_ + ": " + why); }

  private:
    std::vector<std::string_view> fields_;
    std::string where_;
};

/// Takes rays in order of time, and knows in which scan each of them is.
class ScanCutter {
  public:
    ScanCutter(double scan_hz, std::string origin) : scan_s_(1 / scan_hz), origin_(std::move(origin)) {}

    void add(double time_s, Firing firing) {
        // A nanosecond of grace: 0.7 s begins the eighth scan of 0.1 s, whatever the rounding says.
        const auto scan = static_cast<std::size_t>((time_s + 1e-9) / scan_s_);
        if (scan >= kMostScans)
            throw InputError(origin_ + ": more than " + format_count(kMostScans) +
                             " scans; is scan_hz right?");
        while (table_.scan_ends.size() <= scan) table_.scan_ends.push_back(table_.firings.size());
        const std::size_t scan_begin = scan == 0 ? 0 : table_.scan_ends[scan - 1];
        firing.ray = static_cast<std::uint32_t>(table_.firings.size() - scan_begin);
        firing.time_s = static_cast<float>(std::max(0.0, time_s - static_cast<double>(scan) * scan_s_));
        table_.firings.push_back(firing);
        table_.scan_ends.back() = table_.firings.size();
    }
    RayTable take() { return std::move(table_); }

  private:
    static constexpr std::size_t kMostScans = 1'000'000;

    double scan_s_;
    std::string origin_;
    RayTable table_;
};

}  // namespace

RayTable read_ray_table(const std::filesystem::path& path, double scan_hz) {
    const std::string text = read_text_file(path);
    ScanCutter scans(scan_hz, path.string());
    std::optional<Columns> columns;
    double last_s = 0;
    std::size_t rays = 0;
    for (const Line& at : Lines(text)) {
        const std::string_view line = at.text;
        if (line.empty() || line[0] == '#' || line[0] == '\r') continue;
        if (!columns) {
            columns.emplace(split(line), path.string());
            continue;
        }
        const Row row(line, path.string() + ": line " + std::to_string(at.number));
        const double time_s = row.number(columns->time, kTime_s);
        if (time_s < last_s) row.fail("times must ascend from 0");
        last_s = time_s;
        const double beam = columns->beam == Columns::kNone ? 0 : row.number(columns->beam, kBeam);
        if (beam != std::floor(beam)) row.fail("a beam is a whole number from 0 to 65535");
        scans.add(time_s,
                  {direction_of(row.number(columns->azimuth, kAzimuth_deg) * exact::kRadPerDegree,
                                row.number(columns->elevation, kElevation_deg) * exact::kRadPerDegree),
                   0, 0, static_cast<std::uint32_t>(beam)});
        ++rays;
    }
    if (rays == 0) throw InputError(path.string() + ": no rays in this table");
    return scans.take();
}

}  // namespace citysplat::sim
