#include "objects/bank_builder.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/text.hpp"
#include "objects/frame_alignment.hpp"
#include "objects/track_cut.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace citysplat::objects {

namespace {

/// Of a point that was cut out, with its copies while frames are aligned.
constexpr std::uint64_t kBytesPerPoint = 5 * sizeof(ObjectPoint);

bool has_word(std::string_view text, std::span<const std::string_view> words) {
    const std::string lower = lower_case(text);
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view w) { return lower.find(w) != std::string::npos; });
}

std::uint16_t most_frequent_label(std::span<const ObjectPoint> points) {
    std::map<std::uint16_t, std::size_t> counts;
    for (const ObjectPoint& p : points) ++counts[p.label];
    std::uint16_t best = 0;
    std::size_t most = 0;
    for (const auto& [label, count] : counts)
        if (count > most) best = label, most = count;
    return best;
}

double mean_speed(const Track& track) {
    const auto poses = track.path.poses();
    double way_m = 0;
    for (std::size_t i = 1; i < poses.size(); ++i)
        way_m += length(poses[i].world_from_body.translation - poses[i - 1].world_from_body.translation);
    return poses.size() < 2 ? 0 : way_m / (track.path.end_s() - track.path.begin_s());
}

/// The frames where their boxes have them, in the shape of an alignment.
Alignment by_boxes(const ObjectCut& cut) {
    Alignment result;
    const ObjectRoom room = room_of(cut.track.size);
    SurfaceMap map({room.min, room.max, SurfacePyramid::kCellSteps[0]});
    for (const ObjectFrame& frame : cut.frames) {
        result.frames.push_back({true, {}, 1, 1});
        result.points.insert(result.points.end(), frame.points.begin(), frame.points.end());
        map.add(frame.points);
    }
    std::sort(result.points.begin(), result.points.end(), comes_before);
    result.accepted = cut.frames.size();
    result.thickness_m = result.thickness_before_m = map.mean_thickness_m();
    return result;
}

/// The poses of the boxes, corrected by what the alignment of their frames says. Where no frame fits for a
/// while, at the ends of the track or in the middle, the boxes say how the object moves, with the correction
/// of the nearest frame in time.
Track aligned_track(const ObjectCut& cut, const Alignment& alignment) {
    struct Fix {
        double time_s;
        Pose box_from_object;
    };
    std::vector<Fix> fixes;
    for (std::size_t i = 0; i < cut.frames.size(); ++i)
        if (alignment.frames[i].accepted && (fixes.empty() || cut.frames[i].time_s > fixes.back().time_s))
            fixes.push_back({cut.frames[i].time_s, inverse(alignment.frames[i].object_from_box)});
    if (fixes.empty()) return cut.track;
    /// The pose of a box this near to a frame that fits says nothing more.
    constexpr double kNear_s = 0.06, kLeastStep_s = 1e-3;
    std::vector<StampedPose> poses;
    for (const Fix& f : fixes) poses.push_back({f.time_s, cut.track.pose_at(f.time_s) * f.box_from_object});
    for (const StampedPose& box : cut.track.path.poses()) {
        const auto nearest = std::min_element(fixes.begin(), fixes.end(), [&](const Fix& a, const Fix& b) {
            return std::fabs(a.time_s - box.time_s) < std::fabs(b.time_s - box.time_s);
        });
        // Beyond the first and the last frame even a moment counts: the object would stand there.
        const bool beyond = box.time_s < fixes.front().time_s - kLeastStep_s ||
                            box.time_s > fixes.back().time_s + kLeastStep_s;
        if (beyond || std::fabs(nearest->time_s - box.time_s) > kNear_s)
            poses.push_back({box.time_s, box.world_from_body * nearest->box_from_object});
    }
    std::sort(poses.begin(), poses.end(),
              [](const StampedPose& a, const StampedPose& b) { return a.time_s < b.time_s; });
    Track track = cut.track;
    track.path = Trajectory(std::move(poses), cut.track.name);
    return track;
}

std::string centimetres(double metres) { return format_number(std::floor(metres * 1000 + 0.5) / 10) + " cm"; }

/// Why a track cannot become an object, before its frames are aligned; empty when it can.
std::string refusal(const ObjectCut& cut, const BankBuildOptions& options) {
    // The maps of surfaces are grids: 2000 m³ in cells of 4 cm are 125 MB. A tram of 60 m has 1600 m³.
    constexpr double kLargestRoom_m3 = 2000;
    const ObjectSize& size = cut.track.size;
    if (!(size.length_m > 0 && size.width_m > 0 && size.height_m > 0)) return "its box has no size";
    const Vec3d room = room_of(size).max - room_of(size).min;
    if (room.x * room.y * room.z > kLargestRoom_m3)
        return "its box of " + format_number(size.length_m) + " × " + format_number(size.width_m) + " × " +
               format_number(size.height_m) + " m is larger than any vehicle";
    if (cut.points < options.least_points)
        return "only " + format_count(cut.points) + " points are in its boxes";
    return {};
}

/// The same afterwards.
std::string refusal(const ObjectCut& cut, const Alignment& alignment, const BankBuildOptions& options) {
    const double kept = static_cast<double>(alignment.points.size()) / static_cast<double>(cut.points);
    if (kept < options.least_kept)
        return "its frames do not fit together: " + format_number(std::floor(kept * 100)) +
               " % of its points do";
    if (alignment.thickness_m > options.most_thickness_m)
        return "its surfaces are " + centimetres(alignment.thickness_m) + " thick";
    return {};
}

class Builder {
  public:
    Builder(BankWriter& bank, const BankBuildOptions& options, const CancelToken& cancel)
        : bank_(bank), options_(options), cancel_(cancel) {}

    /// `name` is that of the object.
    TrackOutcome make(const ObjectCut& cut, const std::string& name) const {
        TrackOutcome outcome;
        outcome.track = cut.track.name;
        outcome.class_name = cut.track.class_name;
        outcome.points = cut.points;
        outcome.looks = static_cast<std::uint32_t>(cut.frames.size());
        outcome.speed_m_s = mean_speed(cut.track);
        outcome.aligned = cut.track;
        outcome.reason = refusal(cut, options_);
        if (!outcome.reason.empty()) return outcome;
        const Alignment alignment =
            options_.align ? align_frames(cut, options_.registration, cancel_) : by_boxes(cut);
        outcome.frames = static_cast<std::uint32_t>(alignment.accepted);
        outcome.thickness_m = alignment.thickness_m;
        outcome.thickness_by_boxes_m = alignment.thickness_before_m;
        outcome.reason = refusal(cut, alignment, options_);
        if (!outcome.reason.empty()) return outcome;
        outcome.aligned = aligned_track(cut, alignment);
        outcome.object = add(cut, alignment, name);
        if (!outcome.object) outcome.reason = "its points make no splats";
        return outcome;
    }

  private:
    std::optional<BankObject> add(const ObjectCut& cut, const Alignment& alignment,
                                  const std::string& name) const {
        BankObject object;
        object.name = name;
        object.class_name = cut.track.class_name;
        object.size = cut.track.size;
        object.label = most_frequent_label(alignment.points);
        object.source = options_.source;
        object.track = cut.track.name;
        object.begin_s = cut.frames.front().time_s;
        object.end_s = cut.frames.back().time_s;
        object.frames = static_cast<std::uint32_t>(alignment.accepted);
        object.looks = static_cast<std::uint32_t>(cut.frames.size());
        object.points = alignment.points.size();
        object.thickness_m = alignment.thickness_m;
        object.thickness_by_boxes_m = alignment.thickness_before_m;
        std::vector<ObjectPoint> points = alignment.points;
        if (options_.mirror && is_symmetric(object.class_name)) {
            const MirrorImage image = mirror_image(object.size, alignment.points, options_.registration);
            object.mirrored_points = image.points.size();
            points.insert(points.end(), image.points.begin(), image.points.end());
            std::sort(points.begin(), points.end(), comes_before);
        }
        const SplatTile splats = make_splats(points, {object.label, is_rigid(object.class_name)}, cancel_);
        if (splats.empty()) return std::nullopt;
        object.coverage = coverage_of(splats, object.size);
        return bank_.add(std::move(object), splats);
    }

    BankWriter& bank_;
    const BankBuildOptions& options_;
    const CancelToken& cancel_;
};

/// An object that was out of sight for a while has several tracks of one name: the later ones get a number,
/// one that no other track has in its own name.
std::vector<std::string> names_for(std::span<const Track> tracks, const std::string& source) {
    std::set<std::string> taken;
    for (const Track& track : tracks) taken.insert(track.name);
    std::map<std::string, int> so_far;
    std::vector<std::string> names;
    for (const Track& track : tracks) {
        int& number = so_far[track.name];
        std::string name = track.name;
        while (++number > 1 && !taken.insert(name = track.name + "-" + std::to_string(number)).second) {
        }
        names.push_back(source + "-" + name);
    }
    return names;
}

/// Consecutive tracks whose points fit the budget together; a track alone may exceed it.
std::vector<std::pair<std::size_t, std::size_t>> groups_of(std::span<const std::uint64_t> points,
                                                           std::uint64_t budget_bytes) {
    std::vector<std::pair<std::size_t, std::size_t>> groups;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const std::uint64_t more = 2 * points[i] * kBytesPerPoint;  // the rim around it as well
        if (groups.empty() || bytes + more > budget_bytes) {
            groups.push_back({i, i});
            bytes = 0;
        }
        groups.back().second = i + 1;
        bytes += more;
    }
    return groups;
}

}  // namespace

void BankBuildOptions::validate() const {
    if (source.empty()) throw UsageError("objects need a source to be named after");
}

std::size_t BankReport::kept() const {
    return static_cast<std::size_t>(std::count_if(
        tracks.begin(), tracks.end(), [](const TrackOutcome& t) { return t.object.has_value(); }));
}

std::vector<Track> BankReport::aligned_tracks() const {
    std::vector<Track> result;
    for (const TrackOutcome& t : tracks) {
        result.push_back(t.aligned);
        result.back().object_name = t.object ? t.object->name : "";
    }
    return result;
}

bool is_symmetric(std::string_view class_name) {
    static constexpr std::array<std::string_view, 9> kWords{"car",   "truck",   "bus",     "van",  "tram",
                                                            "lorry", "trailer", "vehicle", "train"};
    return has_word(class_name, kWords);
}

bool is_rigid(std::string_view class_name) {
    static constexpr std::array<std::string_view, 8> kWords{"pedestrian", "person",  "people", "animal",
                                                            "rider",      "cyclist", "bird",   "dog"};
    return !has_word(class_name, kWords);
}

BankReport build_bank(BankWriter& bank, const BankInputs& inputs, const BankBuildOptions& options,
                      const CancelToken& cancel, Progress& progress) {
    options.validate();
    const auto& [tracks, scans] = inputs;
    BankReport report;
    BoxTimeStudy study;
    {
        const Progress::Stage stage(progress, "fitting boxes to scans", 0, "files");
        study = study_box_times(scans, tracks, options.box_times, cancel);
    }
    report.box_times = study.chosen;
    report.inside = study.inside;
    report.tracks.resize(tracks.size());
    const std::vector<std::string> names = names_for(tracks, options.source);
    const Builder builder(bank, options, cancel);
    Progress::Stage stage(progress, "making objects", tracks.size(), "tracks");
    for (const auto& [begin, end] : groups_of(study.points, options.memory_bytes)) {
        const auto cuts = cut_tracks(scans, std::span(study.tracks).subspan(begin, end - begin), cancel);
        parallel_tasks(cuts.size(), [&, first = begin](std::size_t i) {
            cancel.check();
            report.tracks[first + i] = builder.make(cuts[i], names[first + i]);
            stage.advance(1);
        });
    }
    return report;
}

}  // namespace citysplat::objects
