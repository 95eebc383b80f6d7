#include "sim/ray_table.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace citysplat::sim {

namespace {

std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> fields;
    while (true) {
        const std::size_t comma = line.find(',');
        std::string_view field = line.substr(0, comma);
        while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
        while (!field.empty() && (field.back() == ' ' || field.back() == '\r')) field.remove_suffix(1);
        fields.push_back(field);
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

double number(const std::vector<std::string_view>& fields, std::size_t column, const std::string& where) {
    double v = NAN;
    if (column < fields.size()) {
        const std::string_view f = fields[column];
        const auto [end, ec] = std::from_chars(f.data(), f.data() + f.size(), v);
        if (ec != std::errc() || end != f.data() + f.size()) v = NAN;
    }
    if (!std::isfinite(v))
        throw InputError(where + ": field " + std::to_string(column + 1) + " is not a number");
    return v;
}

}  // namespace

RayTable read_ray_table(const std::filesystem::path& path) {
    const std::string text = read_text_file(path);
    RayTable table;
    std::vector<std::string_view> header;
    double last_s = 0;
    std::size_t line_number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line(text.data() + at, end - at);
        at = end + 1;
        ++line_number;
        if (line.empty() || line[0] == '#' || line[0] == '\r') continue;
        const std::string where = path.string() + ": line " + std::to_string(line_number);
        const auto fields = split(line);
        if (header.empty()) {
            header = fields;
            continue;
        }
        const Columns columns(header, path.string());
        const double time_s = number(fields, columns.time, where);
        if (time_s < last_s) throw InputError(where + ": times must ascend from 0");
        last_s = time_s;
        constexpr double kRadPerDeg = exact::kPi / 180;
        const double beam = columns.beam == Columns::kNone ? 0 : number(fields, columns.beam, where);
        table.firings.push_back({direction_of(number(fields, columns.azimuth, where) * kRadPerDeg,
                                              number(fields, columns.elevation, where) * kRadPerDeg),
                                 static_cast<float>(time_s), 0,
                                 static_cast<std::uint32_t>(std::clamp(beam, 0.0, 65535.0))});
    }
    if (table.firings.size() < 2 || !(last_s > 0))
        throw InputError(path.string() + ": a ray table needs at least two rays at different times");
    table.period_s =
        last_s * static_cast<double>(table.firings.size()) / static_cast<double>(table.firings.size() - 1);
    return table;
}

}  // namespace citysplat::sim
