#include "io/drive/oxts.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace citysplat::io {

namespace {

constexpr double kEarthRadius_m = 6378137;

/// The columns that are used, with what they can be.
struct OxtsColumn {
    const char* name;
    NumberRange range;
};
constexpr double kAnyAngle_rad = 7;  // more than a turn
constexpr NumberRange kSpeed_m_s{-1000, 1000, "m/s"};
constexpr OxtsColumn kColumns[]{{"latitude", {-85, 85, "degrees"}},
                                {"longitude", {-180, 180, "degrees"}},
                                {"altitude", {-12'000, 100'000, "m"}},
                                {"roll", {-kAnyAngle_rad, kAnyAngle_rad, "rad"}},
                                {"pitch", {-kAnyAngle_rad, kAnyAngle_rad, "rad"}},
                                {"yaw", {-kAnyAngle_rad, kAnyAngle_rad, "rad"}},
                                {"velocity north", kSpeed_m_s},
                                {"velocity east", kSpeed_m_s}};

std::optional<double> parse_timestamp(std::string_view text) {
    const auto part = [&text](std::size_t at, std::size_t size) {
        return at + size <= text.size() ? parse_whole<unsigned>(text.substr(at, size)) : std::nullopt;
    };
    const auto year = part(0, 4), month = part(5, 2), day = part(8, 2), hour = part(11, 2),
               minute = part(14, 2);
    const double second = text.size() > 17 ? parse_number(text.substr(17)).value_or(-1) : -1;
    if (!year || !month || !day || !hour || !minute || text[4] != '-' || text[7] != '-' || text[10] != ' ' ||
        text[13] != ':' || text[16] != ':')
        return std::nullopt;
    using namespace std::chrono;
    const year_month_day date{std::chrono::year{static_cast<int>(*year)}, std::chrono::month{*month},
                              std::chrono::day{*day}};
    if (!date.ok() || *hour > 23 || *minute > 59 || !(second >= 0 && second < 61)) return std::nullopt;
    const double days = static_cast<double>(sys_days{date}.time_since_epoch().count());
    return days * 86400 + *hour * 3600.0 + *minute * 60.0 + second;
}

}  // namespace

OxtsRecord parse_oxts(const std::string& text, const std::string& file_name) {
    std::vector<std::string_view> words;
    for (const Line& line : Lines(text)) {
        if (!words.empty() && !trimmed(line.text).empty())
            throw InputError(file_name + ": line " + std::to_string(line.number) +
                             ": more than one record; expected the record of one frame");
        if (words.empty()) words = words_of(line.text);
    }
    double v[std::size(kColumns)];
    for (std::size_t c = 0; c < std::size(kColumns); ++c) {
        const auto& [name, range] = kColumns[c];
        if (c >= words.size())
            throw InputError(file_name + ": " + std::to_string(words.size()) +
                             " columns; expected the 30 of an OXTS record, " + name + " is missing");
        const auto number = parse_number(words[c]);
        if (!number || !range.contains(*number))
            throw InputError(file_name + ": column " + std::to_string(c + 1) + ": the " + name + " is \"" +
                             std::string(words[c].substr(0, 40)) + "\"; expected a number " + range.text());
        v[c] = *number;
    }
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

OxtsRecord read_oxts(const std::filesystem::path& path) {
    return parse_oxts(read_text_file(path), path.string());
}

OxtsPlane::OxtsPlane(const DriveOptions::Geodetic& o)
    : scale_(exact::cos(o.latitude_deg * exact::kRadPerDegree)) {
    origin_ = place(o.latitude_deg, o.longitude_deg, o.altitude_m);
}

Vec3d OxtsPlane::place(double latitude_deg, double longitude_deg, double altitude_m) const {
    // ln tan(π/4 + φ/2), without a tangent.
    const auto half = exact::sin_cos((90 + latitude_deg) * exact::kRadPerDegree / 2);
    return {scale_ * kEarthRadius_m * longitude_deg * exact::kRadPerDegree,
            scale_ * kEarthRadius_m * exact::log(half.sin / half.cos), altitude_m};
}

Pose OxtsPlane::world_from_body(const OxtsRecord& r) const {
    return {place(r.latitude_deg, r.longitude_deg, r.altitude_m) - origin_,
            from_yaw_pitch_roll(r.yaw_rad, r.pitch_rad, r.roll_rad)};
}

std::vector<std::optional<double>> read_timestamps(const std::filesystem::path& path) {
    const std::string text = read_text_file(path);
    std::vector<std::optional<double>> times;
    for (const Line& line : Lines(text)) {
        const std::string_view stamp = trimmed(line.text);
        times.push_back(stamp.empty() ? std::nullopt : parse_timestamp(stamp));
        if (!stamp.empty() && !times.back())
            throw InputError(path.string() + ": line " + std::to_string(line.number) + ": \"" +
                             std::string(stamp.substr(0, 40)) +
                             "\" is no time; expected YYYY-MM-DD hh:mm:ss.fraction");
    }
    return times;
}

std::vector<std::size_t> longest_ascending(std::span<const double> values) {
    constexpr std::size_t kNone = SIZE_MAX;
    std::vector<std::size_t> ends, before(values.size(), kNone);  // ends[k]: of a row of k + 1, the least
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto at = std::lower_bound(ends.begin(), ends.end(), values[i],
                                         [&](std::size_t end, double value) { return values[end] < value; });
        if (at != ends.begin()) before[i] = *(at - 1);
        if (at == ends.end())
            ends.push_back(i);
        else
            *at = i;
    }
    std::vector<std::size_t> row;
    for (std::size_t i = ends.empty() ? kNone : ends.back(); i != kNone; i = before[i]) row.push_back(i);
    std::reverse(row.begin(), row.end());
    return row;
}

std::vector<double> evened(std::span<const double> times_s, std::span<const OxtsFrame> frames) {
    constexpr std::size_t kReach = 25;
    std::vector<double> even_s;
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::size_t first = i > kReach ? i - kReach : 0, last = std::min(frames.size() - 1, i + kReach);
        const double n = static_cast<double>(last - first + 1);
        const auto number = [&](std::size_t k) {
            return static_cast<double>(frames[k].number) - static_cast<double>(frames[i].number);
        };
        double mean_k = 0, mean_s = 0, kk = 0, ks = 0;
        for (std::size_t k = first; k <= last; ++k)
            mean_k += number(k) / n, mean_s += (times_s[k] - times_s[i]) / n;
        for (std::size_t k = first; k <= last; ++k) {
            const double d = number(k) - mean_k;
            kk += d * d, ks += d * (times_s[k] - times_s[i] - mean_s);
        }
        even_s.push_back(times_s[i] + mean_s - (kk > 0 ? ks / kk : 0) * mean_k);
    }
    return even_s;
}

std::optional<OxtsTimes> times_by_speed(std::span<const OxtsFrame> frames) {
    constexpr double kSlow_m_s = 2, kTick_s = 0.01, kClose_s = 0.0025, kShare = 0.8, kLongest_s = 0.5;
    const std::size_t n = frames.size();
    std::vector<double> steps(n > 0 ? n - 1 : 0);  // 0: not known
    std::size_t tried = 0, known = 0;
    double sum_s = 0, sum_frames = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
        const auto& [number, a, from] = frames[i];
        const auto& [next_number, b, to] = frames[i + 1];
        const Vec3d way = to.translation - from.translation;
        const double east = (a.east_m_s + b.east_m_s) / 2, north = (a.north_m_s + b.north_m_s) / 2;
        const double speed_2 = east * east + north * north;
        if (speed_2 < kSlow_m_s * kSlow_m_s) continue;
        const double step_s = (way.x * east + way.y * north) / speed_2;
        const double ticks = std::floor(step_s / kTick_s + 0.5);
        ++tried;
        if (!(ticks >= 1 && step_s < kLongest_s) || std::fabs(step_s - ticks * kTick_s) > kClose_s) continue;
        ++known;
        steps[i] = ticks * kTick_s;
        sum_s += steps[i];
        sum_frames += static_cast<double>(next_number - number);
    }
    constexpr std::size_t kFewest = 8;
    if (known < kFewest || static_cast<double>(known) < kShare * static_cast<double>(tried))
        return std::nullopt;
    OxtsTimes times;
    times.records_s.push_back(0);
    for (std::size_t i = 0; i + 1 < n; ++i) {
        const double usual_s =
            sum_s / sum_frames * static_cast<double>(frames[i + 1].number - frames[i].number);
        times.records_s.push_back(times.records_s.back() + (steps[i] > 0 ? steps[i] : usual_s));
    }
    times.frames_s = evened(times.records_s, frames);
    return times;
}

}  // namespace citysplat::io
