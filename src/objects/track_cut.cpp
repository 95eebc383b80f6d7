#include "objects/track_cut.hpp"

#include "core/parallel.hpp"
#include "objects/box_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

namespace citysplat::objects {

namespace {

constexpr double kPause_s = 0.025, kLongestLook_s = 0.1;
/// Ground is looked for in a rim of this width around the box, this far above and below its bottom.
constexpr double kRim_m = 0.8, kRimHeight_m = 0.5;
constexpr double kGroundThickness_m = 0.08;
/// A class with fewer points than this share of the most frequent one is not the object's.
constexpr double kRareClass = 0.2;

/// Points of one track, still mixed.
struct Gathered {
    std::vector<ObjectPoint> inside;
    std::vector<ObjectPoint> rim;  ///< may be ground
    std::uint64_t ground = 0;
};

/// Whether the class map says what the label means.
bool is_known(const ClassMap& classes, std::uint16_t label) {
    return label != 0 && classes.classes().count(label) > 0;
}

void gather(const ScanPiece& piece, const Track& track, const ClassMap& classes, Gathered& out) {
    const Box3d reach = reach_of(track, piece, kRim_m);
    if (reach.empty()) return;
    const PointBatch& b = piece.points;
    for (std::size_t i = 0; i < b.size(); ++i) {
        const Vec3d world{b.x[i], b.y[i], b.z[i]};
        if (!is_inside(reach, world) || !track.exists(b.gps_time[i])) continue;
        const Pose object_from_world = inverse(track.pose_at(b.gps_time[i]));
        const Vec3d p = object_from_world.apply(world);
        const bool inside = in_box(track.size, p, kBoxMargin_m);
        if (!inside && !(in_box(track.size, p, kRim_m) && std::fabs(p.z) <= kRimHeight_m)) continue;
        ObjectPoint point;
        point.place = on_lattice(p);
        point.time_s = b.gps_time[i];
        if (!b.intensity.empty()) point.intensity = b.intensity[i];
        if (!b.label.empty()) point.label = b.label[i];
        if (!b.sensor.empty()) point.to_sensor = rotate(object_from_world.rotation, b.sensor[i] - world);
        const bool known = is_known(classes, point.label);
        if (inside && known && classes.at(point.label).group == SplatGroup::ground)
            ++out.ground;
        else if (inside)
            out.inside.push_back(point);
        else if (!known)
            out.rim.push_back(point);
    }
}

/// z = height + slope_x·x + slope_y·y.
struct GroundPlane {
    double height = 0, slope_x = 0, slope_y = 0;
    double at(Vec3d p) const { return height + slope_x * p.x + slope_y * p.y; }
};

/// Least squares over the points within `tolerance_m` of a plane. Steep results are not ground: only the
/// height is taken then. The plane itself when fewer than ten points are near it.
GroundPlane fitted(const GroundPlane& to, std::span<const ObjectPoint> points, double tolerance_m) {
    std::array<double, 9> s{};  // n, x, y, xx, yy, xy, z, xz, yz
    for (const ObjectPoint& point : points) {
        const Vec3d p = point.place;
        if (std::fabs(p.z - to.at(p)) > tolerance_m) continue;
        const std::array<double, 9> more{1,         p.x, p.y,       p.x * p.x, p.y * p.y,
                                         p.x * p.y, p.z, p.x * p.z, p.y * p.z};
        for (std::size_t k = 0; k < s.size(); ++k) s[k] += more[k];
    }
    constexpr double kLeastPoints = 10, kSteepest = 0.12;
    if (s[0] < kLeastPoints) return to;
    const double mx = s[1] / s[0], my = s[2] / s[0], mz = s[6] / s[0];
    const double xx = s[3] / s[0] - mx * mx, yy = s[4] / s[0] - my * my, xy = s[5] / s[0] - mx * my;
    const double xz = s[7] / s[0] - mx * mz, yz = s[8] / s[0] - my * mz;
    const double determinant = xx * yy - xy * xy;
    GroundPlane plane{mz, 0, 0};
    if (determinant > 1e-3) {
        plane.slope_x = (yy * xz - xy * yz) / determinant;
        plane.slope_y = (xx * yz - xy * xz) / determinant;
        if (std::fabs(plane.slope_x) > kSteepest || std::fabs(plane.slope_y) > kSteepest)
            plane.slope_x = plane.slope_y = 0;
        plane.height = mz - plane.slope_x * mx - plane.slope_y * my;
    }
    return plane;
}

/// The ground around a box; its bottom where nothing is seen of it.
GroundPlane ground_around(std::span<const ObjectPoint> rim) {
    if (rim.size() < 10) return {};
    std::vector<double> heights;
    for (const ObjectPoint& p : rim) heights.push_back(p.place.z);
    const auto low = heights.begin() + static_cast<std::ptrdiff_t>(heights.size() / 4);
    std::nth_element(heights.begin(), low, heights.end());
    GroundPlane plane{*low, 0, 0};
    for (const double tolerance_m : {0.25, 0.15, 0.1, 0.08, 0.08}) plane = fitted(plane, rim, tolerance_m);
    return plane;
}

/// Cuts points sorted by time where nothing is seen for a while; calls use(begin, end).
template <class Use>
void for_each_look(std::span<const ObjectPoint> points, const Use& use) {
    for (std::size_t begin = 0, end; begin < points.size(); begin = end) {
        for (end = begin + 1; end < points.size(); ++end)
            if (points[end].time_s - points[end - 1].time_s > kPause_s ||
                points[end].time_s - points[begin].time_s > kLongestLook_s)
                break;
        use(begin, end);
    }
}

void sort_by_time(std::vector<ObjectPoint>& points) {
    std::sort(points.begin(), points.end(), [](const ObjectPoint& a, const ObjectPoint& b) {
        return a.time_s != b.time_s ? a.time_s < b.time_s : comes_before(a, b);
    });
    const auto same = [](const ObjectPoint& a, const ObjectPoint& b) {
        return !comes_before(a, b) && !comes_before(b, a);
    };
    points.erase(std::unique(points.begin(), points.end(), same), points.end());
}

/// The points of the rim from shortly before to shortly after a look.
std::span<const ObjectPoint> during(std::span<const ObjectPoint> rim, double begin_s, double end_s) {
    const auto time_below = [](const ObjectPoint& p, double t) { return p.time_s < t; };
    const auto first = std::lower_bound(rim.begin(), rim.end(), begin_s - kPause_s, time_below);
    const auto last = std::lower_bound(first, rim.end(), end_s + kPause_s, time_below);
    return {first, last};
}

void remove_rare_classes(const ClassMap& classes, std::vector<ObjectPoint>& points, ObjectCut& cut) {
    std::map<std::uint16_t, std::size_t> counts;
    for (const ObjectPoint& p : points)
        if (is_known(classes, p.label)) ++counts[p.label];
    std::size_t most = 0;
    for (const auto& [label, count] : counts) most = std::max(most, count);
    const auto rare = [&](const ObjectPoint& p) {
        return is_known(classes, p.label) &&
               static_cast<double>(counts[p.label]) < kRareClass * static_cast<double>(most);
    };
    cut.other_points = std::erase_if(points, rare);
}

ObjectCut make_cut(const Track& track, const ClassMap& classes, Gathered& gathered) {
    ObjectCut cut;
    cut.track = track;
    cut.ground_points = gathered.ground;
    remove_rare_classes(classes, gathered.inside, cut);
    sort_by_time(gathered.inside);
    sort_by_time(gathered.rim);
    for_each_look(gathered.inside, [&](std::size_t begin, std::size_t end) {
        const auto look = std::span(gathered.inside).subspan(begin, end - begin);
        const GroundPlane ground =
            ground_around(during(gathered.rim, look.front().time_s, look.back().time_s));
        ObjectFrame frame;
        double sum_s = 0;
        for (const ObjectPoint& p : look) {
            if (!is_known(classes, p.label) && p.place.z < ground.at(p.place) + kGroundThickness_m) {
                ++cut.ground_points;
                continue;
            }
            frame.points.push_back(p);
            sum_s += p.time_s - look.front().time_s;
        }
        if (frame.points.empty()) return;
        frame.time_s = look.front().time_s + sum_s / static_cast<double>(frame.points.size());
        std::sort(frame.points.begin(), frame.points.end(), comes_before);
        cut.points += frame.points.size();
        cut.frames.push_back(std::move(frame));
    });
    return cut;
}

}  // namespace

std::vector<ObjectCut> cut_tracks(const ScanInputs& scans, std::span<const Track> tracks,
                                  const CancelToken& cancel) {
    std::vector<Gathered> gathered(tracks.size());
    std::mutex mutex;
    parallel_for(scans.sources.size(), [&](std::size_t file) {
        read_pieces(scans, file, cancel, [&](const ScanPiece& piece) {
            for (std::size_t i = 0; i < tracks.size(); ++i) {
                Gathered own;
                gather(piece, tracks[i], scans.classes, own);
                if (own.inside.empty() && own.rim.empty() && own.ground == 0) continue;
                const std::lock_guard lock(mutex);
                Gathered& all = gathered[i];
                all.inside.insert(all.inside.end(), own.inside.begin(), own.inside.end());
                all.rim.insert(all.rim.end(), own.rim.begin(), own.rim.end());
                all.ground += own.ground;
            }
        });
    });
    std::vector<ObjectCut> cuts(tracks.size());
    parallel_for(tracks.size(), [&](std::size_t i) {
        cancel.check();
        cuts[i] = make_cut(tracks[i], scans.classes, gathered[i]);
        gathered[i] = {};
    });
    return cuts;
}

}  // namespace citysplat::objects
