#include "io/tracks/track_builder.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace {

constexpr NumberRange kExtent_m{0, 1000, "m"};
/// Beyond the span that is asked for, so that there is something to interpolate to.
constexpr double kMargin_s = 2;

}  // namespace

void TrackBuilder::note(const std::string& text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

bool TrackBuilder::is_wanted(const StampedPose& stamped) const {
    if (stamped.time_s < options_.from_s - kMargin_s || stamped.time_s > options_.to_s + kMargin_s)
        return false;
    if (!options_.region) return true;
    const Vec3d t = stamped.world_from_body.translation;
    const Box3d& r = *options_.region;
    return t.x >= r.min.x && t.x <= r.max.x && t.y >= r.min.y && t.y <= r.max.y;
}

void TrackBuilder::add(const TrackBox& box) {
    const auto fail = [&](const std::string& what) { throw InputError(where(box.record) + ": " + what); };
    StampedPose stamped = box.stamped;
    stamped.time_s += options_.time_offset_s;
    Vec3d& t = stamped.world_from_body.translation;
    t = t + options_.position_offset_m;
    if (!ranges::kTime_s.contains(stamped.time_s))
        fail("time " + format_number(stamped.time_s) + " is not a number of seconds " +
             ranges::kTime_s.text());
    for (const double v : {t.x, t.y, t.z})
        if (!ranges::kPosition_m.contains(v))
            fail("position " + format_number(v) + "; expected metres on Earth");
    const Quaternion& q = stamped.world_from_body.rotation;
    const double n = std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    if (!(std::fabs(n - 1) < 0.02)) fail("the rotation has the length " + format_number(n) + "; expected 1");
    for (const double v : {box.size.length_m, box.size.width_m, box.size.height_m})
        if (!kExtent_m.contains(v))
            fail("a size of " + format_number(v) + "; expected a number " + kExtent_m.text());
    if (box.id.empty()) fail("an object without id");
    ++added_;
    if (!box.always && !is_wanted(stamped)) return;
    const auto [at, fresh] = by_id_.emplace(box.id, objects_.size());
    if (fresh) {
        objects_.emplace_back();
        objects_.back().name = std::string(box.name.empty() ? box.id : box.name);
        objects_.back().class_name = std::string(box.class_name);
        objects_.back().always = box.always;
    }
    Object& object = objects_[at->second];
    if (object.class_name != box.class_name)
        fail("object \"" + printable(box.id) + "\" was of class \"" + printable(object.class_name) +
             "\" and is now \"" + printable(box.class_name) + "\"");
    if (object.always != box.always || (box.always && !fresh))
        fail("object \"" + printable(box.id) + "\" stands for ever, and is there twice");
    if (box.size.length_m > 0 || box.size.width_m > 0 || box.size.height_m > 0) {
        object.size_sum.length_m += box.size.length_m;
        object.size_sum.width_m += box.size.width_m;
        object.size_sum.height_m += box.size.height_m;
        ++object.sizes;
    }
    object.entries.push_back({stamped, box.record, look_of(box.object)});
}

std::uint32_t TrackBuilder::look_of(std::string_view object) {
    const auto [at, fresh] = looks_.emplace(object, static_cast<std::uint32_t>(look_names_.size()));
    if (fresh) look_names_.emplace_back(object);
    return at->second;
}

void TrackBuilder::sort(Object& object) const {
    auto& entries = object.entries;
    const auto earlier = [](const Entry& a, const Entry& b) { return a.stamped.time_s < b.stamped.time_s; };
    if (!std::is_sorted(entries.begin(), entries.end(), earlier))
        std::stable_sort(entries.begin(), entries.end(), earlier);
    for (std::size_t i = 1; i < entries.size(); ++i)
        if (!(entries[i].stamped.time_s > entries[i - 1].stamped.time_s))
            throw InputError(where(entries[i].record) + ": object \"" + printable(object.name) +
                             "\" has another box at the time " + format_number(entries[i].stamped.time_s) +
                             " (" + kind_ + " " + std::to_string(entries[i - 1].record) + ")");
}

double TrackBuilder::usual_step_s() const {
    std::vector<double> steps;
    for (const Object& object : objects_)
        for (std::size_t i = 1; i < object.entries.size(); ++i)
            steps.push_back(object.entries[i].stamped.time_s - object.entries[i - 1].stamped.time_s);
    if (steps.empty()) return 0.1;
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    return *middle;
}

void TrackBuilder::cut(const Object& object, double step_s, std::vector<Track>& tracks) const {
    const double longest_s = std::max(gap_s_, gap_steps_ * step_s);
    const auto& entries = object.entries;
    const auto follows = [&](std::size_t i) {
        return i < entries.size() && entries[i].stamped.time_s - entries[i - 1].stamped.time_s <= longest_s;
    };
    for (std::size_t begin = 0; begin < entries.size();) {
        std::vector<StampedPose> poses;
        std::size_t end = begin;
        do poses.push_back(entries[end++].stamped);
        while (follows(end) && entries[end].look == entries[begin].look);
        // Another look begins at the next box, and this one lasts until then.
        const bool changes = follows(end);
        if (changes) poses.push_back(entries[end].stamped);
        Track track = Track::along(object.name, Trajectory(std::move(poses), file_));
        if (changes) track.end_s = entries[end].stamped.time_s;
        track.class_name = object.class_name;
        track.object_name = look_names_[entries[begin].look];
        if (object.sizes) {
            const auto n = static_cast<double>(object.sizes);
            track.size = {object.size_sum.length_m / n, object.size_sum.width_m / n,
                          object.size_sum.height_m / n};
        }
        // Seen once: there for the half step on either side.
        if (end == begin + 1 && !changes && !object.always) {
            const bool continues = begin > 0 && follows(begin);
            track.begin_s = entries[begin].stamped.time_s - (continues ? 0 : step_s / 2);
            track.end_s = entries[begin].stamped.time_s + step_s / 2;
        }
        tracks.push_back(std::move(track));
        begin = end;
    }
}

TrackFile TrackBuilder::finish() && {
    if (added_ == 0) throw InputError(file_ + ": no object in this file");
    for (Object& object : objects_) sort(object);
    const double step_s = usual_step_s();
    TrackFile result;
    for (const Object& object : objects_) cut(object, step_s, result.tracks);
    std::uint64_t kept = 0;
    for (const Object& object : objects_) kept += object.entries.size();
    if (kept < added_)
        note(format_count(added_ - kept) + " of " + format_count(added_) +
             " boxes are at other times or too far away");
    result.notes = std::move(notes_);
    return result;
}

}  // namespace citysplat::io
