#include "objects/box_times.hpp"

#include "core/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

namespace citysplat::objects {

namespace {

/// Objects below this speed fit their boxes whatever times mean.
constexpr double kMoving_m_s = 2;
/// Tracks go on so long before their first pose and after their last.
constexpr double kGoesOn_s = 0.1;
/// Points below this share of a box may be ground.
constexpr double kAboveGround = 0.2;
/// A box needs so many points to tell when it was seen.
constexpr std::int64_t kLeastPoints = 5;
/// Key times keep this distance.
constexpr double kLeastStep_s = 1e-3;

/// When the points of a box were measured, after the time of the box.
struct Seen {
    std::int64_t points = 0, sum_ns = 0;
};

struct TrackCounts {
    std::uint64_t points = 0;
    std::array<std::uint64_t, 4> inside{};
    std::array<std::vector<Seen>, 3> seen;  ///< by meaning (begin, middle, end) and key
};

double speed_at(const Track& track, std::size_t key) {
    const auto poses = track.path.poses();
    if (poses.size() < 2) return 0;
    const StampedPose& a = poses[key > 0 ? key - 1 : 0];
    const StampedPose& b = poses[std::min(key + 1, poses.size() - 1)];
    return length(b.world_from_body.translation - a.world_from_body.translation) / (b.time_s - a.time_s);
}

/// The key that belongs to the scan when times mean its begin (0), middle (1) or end (2).
std::optional<std::size_t> key_of(const Track& track, const ScanPiece& scan, int meaning) {
    const double wanted = scan.begin_s + (scan.end_s - scan.begin_s) * 0.5 * meaning;
    const double tolerance = std::max(0.3 * (scan.end_s - scan.begin_s), 1e-6);
    const auto poses = track.path.poses();
    const auto after = std::lower_bound(poses.begin(), poses.end(), wanted,
                                        [](const StampedPose& p, double t) { return p.time_s < t; });
    std::optional<std::size_t> best;
    double best_s = tolerance;
    for (auto p = after == poses.begin() ? after : after - 1; p != poses.end() && p <= after; ++p)
        if (std::fabs(p->time_s - wanted) <= best_s) {
            best = static_cast<std::size_t>(p - poses.begin());
            best_s = std::fabs(p->time_s - wanted);
        }
    return best;
}

void count_piece(const ScanPiece& scan, const Track& track, TrackCounts& counts) {
    const Box3d reach = reach_of(track, scan, 0);
    if (reach.empty()) return;
    std::array<std::optional<std::size_t>, 3> keys;
    std::array<Pose, 3> object_from_world;
    bool moving = false;
    for (int m = 0; m < 3; ++m) {
        const auto i = static_cast<std::size_t>(m);
        if (scan.sweep) keys[i] = key_of(track, scan, m);
        if (!keys[i]) continue;
        object_from_world[i] = inverse(track.path.poses()[*keys[i]].world_from_body);
        moving = moving || speed_at(track, *keys[i]) >= kMoving_m_s;
    }
    for (std::size_t i = 0; i < scan.points.size(); ++i) {
        const Vec3d p{scan.points.x[i], scan.points.y[i], scan.points.z[i]};
        if (!is_inside(reach, p)) continue;
        const double time_s = scan.points.gps_time[i];
        const auto inside = [&](Vec3d q) {
            return in_box(track.size, q, 0) && q.z >= kAboveGround * track.size.height_m;
        };
        const bool now = inside(inverse(track.pose_at(time_s)).apply(p));
        bool any = now;
        if (moving && now) ++counts.inside[0];
        for (std::size_t m = 0; m < 3; ++m) {
            if (!keys[m] || !inside(object_from_world[m].apply(p))) continue;
            any = true;
            if (moving) ++counts.inside[m + 1];
            Seen& seen = counts.seen[m][*keys[m]];
            ++seen.points;
            seen.sum_ns += static_cast<std::int64_t>(
                std::floor((time_s - track.path.poses()[*keys[m]].time_s) * 1e9 + 0.5));
        }
        if (any) ++counts.points;
    }
}

void add(TrackCounts& to, const TrackCounts& more) {
    to.points += more.points;
    for (std::size_t m = 0; m < 4; ++m) to.inside[m] += more.inside[m];
    for (std::size_t m = 0; m < 3; ++m)
        for (std::size_t k = 0; k < to.seen[m].size(); ++k) {
            to.seen[m][k].points += more.seen[m][k].points;
            to.seen[m][k].sum_ns += more.seen[m][k].sum_ns;
        }
}

TrackCounts counts_for(const Track& track) {
    TrackCounts counts;
    for (auto& seen : counts.seen) seen.resize(track.path.poses().size());
    return counts;
}

/// Times of the boxes: when their points were measured, or as much later than their stamps as in the mean of
/// the track where a box has too few points.
std::vector<StampedPose> retimed(const Track& track, std::span<const Seen> seen) {
    Seen all;
    for (const Seen& s : seen) all.points += s.points, all.sum_ns += s.sum_ns;
    const double mean_s =
        all.points == 0 ? 0 : static_cast<double>(all.sum_ns) * 1e-9 / static_cast<double>(all.points);
    std::vector<StampedPose> poses;
    for (std::size_t k = 0; k < seen.size(); ++k) {
        StampedPose pose = track.path.poses()[k];
        pose.time_s += seen[k].points < kLeastPoints
                           ? mean_s
                           : static_cast<double>(seen[k].sum_ns) * 1e-9 / static_cast<double>(seen[k].points);
        if (poses.empty() || pose.time_s >= poses.back().time_s + kLeastStep_s) poses.push_back(pose);
    }
    return poses;
}

/// The track with these poses, going on evenly for a moment at both ends.
Track with_poses(const Track& track, std::vector<StampedPose> poses) {
    if (poses.size() >= 2) {
        const auto beyond = [](const StampedPose& from, const StampedPose& to) {
            const double step_s = to.time_s - from.time_s, share = kGoesOn_s / std::fabs(step_s);
            StampedPose next = to;
            next.time_s += step_s > 0 ? kGoesOn_s : -kGoesOn_s;
            next.world_from_body.translation =
                to.world_from_body.translation +
                share * (to.world_from_body.translation - from.world_from_body.translation);
            return next;
        };
        const StampedPose before = beyond(poses[1], poses[0]);
        poses.push_back(beyond(poses[poses.size() - 2], poses.back()));
        poses.insert(poses.begin(), before);
    }
    Track result = track;
    result.path = Trajectory(std::move(poses), track.name);
    if (result.path.poses().size() >= 2) {
        result.begin_s = result.path.begin_s();
        result.end_s = result.path.end_s();
    }
    return result;
}

}  // namespace

Box3d reach_of(const Track& track, const ScanPiece& piece, double grow_m) {
    constexpr double kMargin_s = 0.15;
    return citysplat::reach_of(track, piece.begin_s - kMargin_s, piece.end_s + kMargin_s, grow_m);
}

BoxTimeStudy study_box_times(const ScanInputs& scans, std::span<const Track> tracks, BoxTimes wanted,
                             const CancelToken& cancel) {
    std::vector<TrackCounts> counts;
    for (const Track& track : tracks) counts.push_back(counts_for(track));
    std::mutex mutex;
    parallel_for(scans.sources.size(), [&](std::size_t file) {
        read_pieces(scans, file, cancel, [&](const ScanPiece& piece) {
            for (std::size_t i = 0; i < tracks.size(); ++i) {
                if (reach_of(tracks[i], piece, 0).empty()) continue;
                TrackCounts own = counts_for(tracks[i]);
                count_piece(piece, tracks[i], own);
                const std::lock_guard lock(mutex);
                add(counts[i], own);  // whole numbers: any order
            }
        });
    });
    BoxTimeStudy study;
    for (const TrackCounts& c : counts)
        for (std::size_t m = 0; m < 4; ++m) study.inside[m] += c.inside[m];
    study.chosen = wanted;
    if (wanted == BoxTimes::automatic) {
        const auto most = std::max_element(study.inside.begin(), study.inside.end());
        study.chosen = static_cast<BoxTimes>(1 + (most - study.inside.begin()));
    }
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        const auto poses = tracks[i].path.poses();
        study.tracks.push_back(with_poses(
            tracks[i], study.chosen == BoxTimes::exact
                           ? std::vector<StampedPose>(poses.begin(), poses.end())
                           : retimed(tracks[i], counts[i].seen[static_cast<std::size_t>(study.chosen) - 2])));
        study.points.push_back(counts[i].points);
    }
    return study;
}

}  // namespace citysplat::objects
