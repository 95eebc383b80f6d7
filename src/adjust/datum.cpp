#include "adjust/datum.hpp"

#include <algorithm>

namespace citysplat::adjust {

namespace {

/// Seconds of the drive that a knot stands for.
double seconds_of(const Correction& drive, std::size_t knot) {
    const auto times = drive.knot_times_s();
    if (times.size() == 1) return 1;
    return (times[std::min(knot + 1, times.size() - 1)] - times[knot > 0 ? knot - 1 : 0]) / 2;
}

/// The knots of a drive that some cell says something about.
struct SeenKnots {
    SeenKnots(const Corrections& corrections, std::size_t d, const std::vector<bool>& seen)
        : drive(corrections.drive(d)), first_knot(corrections.first_knot(d)), all(seen) {
        for (std::size_t k = 0; k < drive.knots().size(); ++k)
            if (contains(k)) {
                if (!any) first = k;
                last = k, any = true;
            }
    }
    bool contains(std::size_t k) const { return all[first_knot + k]; }

    const Correction& drive;
    std::size_t first_knot;
    const std::vector<bool>& all;
    std::size_t first = 0, last = 0;
    bool any = false;
};

/// Means over the seen knots of a group, by time.
struct GroupMeans {
    double seconds = 0;
    Vec3d position_m{0, 0, 0}, shift_m{0, 0, 0}, turn_rad{0, 0, 0};

    void add(const SeenKnots& knots, Vec3d origin) {
        for (std::size_t k = knots.first; k <= knots.last; ++k) {
            if (!knots.contains(k)) continue;
            const double s = seconds_of(knots.drive, k);
            seconds += s;
            position_m = position_m + s * (knots.drive.knot_position_m(k) - origin);
            shift_m = shift_m + s * knots.drive.knots()[k].shift_m;
            turn_rad = turn_rad + s * knots.drive.knots()[k].turn_rad;
        }
    }
};

}  // namespace

std::vector<std::size_t> tied_drives(const BlockEquations& equations, const Corrections& corrections) {
    std::vector<std::size_t> group(corrections.drives());
    for (std::size_t d = 0; d < group.size(); ++d) group[d] = d;
    const auto drive_of = [&](std::size_t knot) {
        std::size_t d = corrections.drives() - 1;
        while (corrections.first_knot(d) > knot) --d;
        return d;
    };
    for (std::size_t d = 1; d < corrections.drives(); ++d)
        for (std::size_t k = 0; k < corrections.drive(d).knots().size(); ++k)
            for (const std::uint32_t column : equations.row(corrections.first_knot(d) + k).columns) {
                if (column >= corrections.first_knot(d)) break;
                const std::size_t a = group[d], b = group[drive_of(column)];
                if (a != b) std::replace(group.begin(), group.end(), std::max(a, b), std::min(a, b));
            }
    return group;
}

void hold_datum(Corrections& corrections, const std::vector<std::size_t>& groups,
                const std::vector<bool>& seen) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
        if (groups[g] != g) continue;
        const Vec3d origin = corrections.drive(g).knot_position_m(0);
        GroupMeans means;
        for (std::size_t d = g; d < groups.size(); ++d)
            if (groups[d] == g) means.add({corrections, d, seen}, origin);
        if (means.seconds == 0) continue;
        const double each = 1 / means.seconds;
        const Vec3d centre = origin + each * means.position_m, turn = each * means.turn_rad;
        const Vec3d shift = each * means.shift_m;
        for (std::size_t d = g; d < groups.size(); ++d) {
            if (groups[d] != g) continue;
            const SeenKnots knots(corrections, d, seen);
            if (!knots.any) continue;
            Correction& drive = corrections.drive(d);
            for (std::size_t k = 0; k < drive.knots().size(); ++k) {
                const Vec3d at = drive.knot_position_m(std::clamp(k, knots.first, knots.last));
                KnotCorrection& knot = drive.knots()[k];
                knot.shift_m = knot.shift_m - shift - cross(turn, at - centre);
                knot.turn_rad = knot.turn_rad - turn;
            }
        }
    }
}

}  // namespace citysplat::adjust
