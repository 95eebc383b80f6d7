#include "io/bag/frame_tree.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace citysplat::io {

namespace {

/// A day at 500 Hz. More is a damaged file, or one that was made to take all memory.
constexpr std::size_t kMostPoses = 50'000'000;

bool same(const Pose& a, const Pose& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

bool FramePath::covers(double begin_s, double end_s) const {
    return std::all_of(moving_.begin(), moving_.end(),
                       [&](const Trajectory& t) { return t.covers(begin_s) && t.covers(end_s); });
}

Pose FramePath::at(double time_s) const {
    Pose pose = *moving_.front().at(time_s);
    for (std::size_t i = 1; i < moving_.size(); ++i) pose = pose * *moving_[i].at(time_s);
    return pose * fixed_;
}

void FrameTree::add(const std::string& parent, const std::string& child, const StampedPose& pose,
                    Source source) {
    const auto [at, fresh] = edges_.try_emplace(child, Edge{parent, source, {}});
    Edge& edge = at->second;
    // What tf says goes before odometry, and a fixed frame has the pose that was told last.
    if (source < edge.source) return;
    if (source > edge.source) edge = Edge{parent, source, {}};
    if (edge.parent != parent)
        throw InputError(file_name_ + ": the frame \"" + printable(child) + "\" hangs on \"" +
                         printable(edge.parent) + "\" and on \"" + printable(parent) +
                         "\"; a bag with one tree of frames is needed");
    if (source == Source::fixed) edge.poses.clear();
    if (++poses_ > kMostPoses)
        throw InputError(file_name_ + ": more than " + format_count(kMostPoses) + " poses; divide the bag");
    edge.poses.push_back(pose);
    Trajectory({pose}, file_name_ + ": frame \"" + printable(child) + "\"");  // throws when it is none
}

std::string FrameTree::listed() const {
    std::set<std::string> names;
    for (const auto& [child, edge] : edges_) names.insert(child), names.insert(edge.parent);
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
    return text.size() > 200 ? text.substr(0, 200) + "…" : text;
}

Trajectory FrameTree::trajectory_of(const std::string& child, const Edge& edge, const Pose& before) const {
    std::vector<StampedPose> poses = edge.poses;
    std::stable_sort(poses.begin(), poses.end(),
                     [](const StampedPose& a, const StampedPose& b) { return a.time_s < b.time_s; });
    std::vector<StampedPose> once;
    for (const StampedPose& pose : poses) {
        if (!once.empty() && once.back().time_s == pose.time_s) {
            if (!same(once.back().world_from_body, pose.world_from_body))
                throw InputError(file_name_ + ": the frame \"" + printable(child) +
                                 "\" is in two places at " + format_number(pose.time_s) + " s");
            continue;
        }
        once.push_back(pose);
    }
    for (StampedPose& pose : once) pose.world_from_body = before * pose.world_from_body;
    return Trajectory(std::move(once), file_name_ + ": frame \"" + printable(child) + "\"");
}

std::optional<FramePath> FrameTree::path_to(const std::string& frame) const {
    std::vector<std::pair<const std::string*, const Edge*>> up;
    for (auto at = edges_.find(frame); at != edges_.end(); at = edges_.find(at->second.parent)) {
        up.emplace_back(&at->first, &at->second);
        if (up.size() > edges_.size())
            throw InputError(file_name_ + ": the frames hang on each other in a circle, through \"" +
                             printable(frame) + "\"");
    }
    std::vector<Trajectory> moving;
    Pose fixed;
    for (auto at = up.rbegin(); at != up.rend(); ++at) {
        const auto& [child, edge] = *at;
        if (edge->source == Source::fixed) {
            fixed = fixed * edge->poses.back().world_from_body;
        } else {
            moving.push_back(trajectory_of(*child, *edge, fixed));
            fixed = {};
        }
    }
    if (moving.empty()) return std::nullopt;
    return FramePath(std::move(moving), fixed);
}

}  // namespace citysplat::io
