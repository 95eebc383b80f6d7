#include "citysplat/trajectory_report.hpp"

#include "core/bytes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace citysplat::cli {

namespace {

struct Summary {
    double length_m = 0, longest_pause_s = 0;
    Vec3d min, max;

    explicit Summary(const Trajectory& t) : min(t.poses()[0].world_from_body.translation), max(min) {
        const auto poses = t.poses();
        for (std::size_t i = 1; i < poses.size(); ++i) {
            const Vec3d p = poses[i].world_from_body.translation;
            length_m += length(p - poses[i - 1].world_from_body.translation);
            longest_pause_s = std::max(longest_pause_s, poses[i].time_s - poses[i - 1].time_s);
            min = {std::min(min.x, p.x), std::min(min.y, p.y), std::min(min.z, p.z)};
            max = {std::max(max.x, p.x), std::max(max.y, p.y), std::max(max.z, p.z)};
        }
    }
};

std::string fixed(double v) {
    char text[64];
    std::snprintf(text, sizeof text, "%.3f", v);
    return text;
}

}  // namespace

nlohmann::json trajectory_json(const std::string& file, const Trajectory& t) {
    const Summary s(t);
    return {{"file", file},
            {"poses", t.poses().size()},
            {"time", {t.begin_s(), t.end_s()}},
            {"length_m", s.length_m},
            {"longest_pause_s", s.longest_pause_s},
            {"bounds", {{"min", {s.min.x, s.min.y, s.min.z}}, {"max", {s.max.x, s.max.y, s.max.z}}}}};
}

std::string trajectory_page(const std::string& file, const Trajectory& t) {
    const Summary s(t);
    return file + "\n  trajectory    " + format_count(t.poses().size()) + " poses, " + fixed(s.length_m) +
           " m\n  time          " + fixed(t.begin_s()) + " to " + fixed(t.end_s()) + "  (" +
           fixed(t.end_s() - t.begin_s()) + " s, up to " + fixed(s.longest_pause_s) +
           " s between poses)\n  x             " + fixed(s.min.x) + " to " + fixed(s.max.x) +
           "\n  y             " + fixed(s.min.y) + " to " + fixed(s.max.y) + "\n  z             " +
           fixed(s.min.z) + " to " + fixed(s.max.z) + "\n";
}

std::string not_covered_text(const NotCovered& n, const Trajectory& t) {
    const double percent = 100 * static_cast<double>(n.points) / static_cast<double>(n.of);
    char share[16];
    std::snprintf(share, sizeof share, percent < 1 ? "%.2g" : "%.0f", percent);
    return (n.points == n.of ? "no point has a time that the trajectory covers"
                             : std::string(share) + " % of the points (" + format_count(n.points) + " of " +
                                   format_count(n.of) + ") have times that the trajectory does not cover") +
           ": it has " + fixed(t.begin_s()) + " to " + fixed(t.end_s()) + " s, they " + fixed(n.begin_s) +
           " to " + fixed(n.end_s) + " s; look at --time-offset, --gps-week and --adjusted-gps-time";
}

}  // namespace citysplat::cli
