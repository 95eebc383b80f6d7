#include "citysplat/file_report.hpp"

#include "core/bytes.hpp"
#include "core/math/lattice.hpp"
#include "core/parallel.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cmath>

namespace citysplat::cli {

namespace {

void count_labels(const std::vector<std::uint16_t>& labels, std::map<std::uint16_t, std::uint64_t>& classes) {
    for (std::size_t i = 0; i < labels.size();) {  // labels come in runs
        std::size_t end = i + 1;
        while (end < labels.size() && labels[end] == labels[i]) ++end;
        classes[labels[i]] += end - i;
        i = end;
    }
}

/// How many files say what.
class Tally {
  public:
    void add(const std::string& what) { ++counts_[what]; }
    bool agree() const { return counts_.size() <= 1; }

    /// What all of them say, or a line for each of the most frequent: "LAS 1.2 (3 files)".
    std::string text(const std::string& of_empty) const {
        if (agree()) return counts_.empty() ? "" : counts_.begin()->first;
        constexpr std::size_t kMostLines = 8;
        std::vector<std::pair<std::string, std::uint64_t>> sorted(counts_.begin(), counts_.end());
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
        std::string out;
        for (std::size_t i = 0; i < sorted.size() && i < kMostLines; ++i)
            out += (i ? "\n" : "") + (sorted[i].first.empty() ? of_empty : sorted[i].first) + " (" +
                   files_text(sorted[i].second) + ")";
        if (sorted.size() > kMostLines)
            out += "\nand " + std::to_string(sorted.size() - kMostLines) + " others";
        return out;
    }

    static std::string files_text(std::uint64_t n) { return format_count(n) + (n == 1 ? " file" : " files"); }

  private:
    std::map<std::string, std::uint64_t> counts_;
};

}  // namespace

void Contents::add(const PointBatch& b, const Trajectory* trajectory) {
    points += b.size();
    no_return += b.no_return;
    damaged += b.damaged;
    for (std::size_t i = 0; i < masked.size(); ++i) masked[i] += b.masked[i];
    for (std::size_t i = 0; i < b.size(); ++i) {
        box.grow(Vec3d{b.x[i], b.y[i], b.z[i]});
    }
    for (const double t : b.gps_time)
        time_begin_s = std::min(time_begin_s, t), time_end_s = std::max(time_end_s, t);
    if (trajectory)
        for (const double t : b.gps_time) not_covered += !trajectory->covers(t);
    for (const auto v : b.intensity)
        intensity_min = std::min(intensity_min, v), intensity_max = std::max(intensity_max, v);
    for (const auto v : b.withheld) withheld += v;
    count_labels(b.label, classes);
}

void Contents::add(const Contents& o) {
    points += o.points, no_return += o.no_return, damaged += o.damaged, withheld += o.withheld;
    not_covered += o.not_covered;
    for (std::size_t i = 0; i < masked.size(); ++i) masked[i] += o.masked[i];
    box.grow(o.box);
    time_begin_s = std::min(time_begin_s, o.time_begin_s), time_end_s = std::max(time_end_s, o.time_end_s);
    intensity_min = std::min(intensity_min, o.intensity_min);
    intensity_max = std::max(intensity_max, o.intensity_max);
    for (const auto& [label, count] : o.classes) classes[label] += count;
}

Contents read_contents(const PointFile& file, const Trajectory* trajectory, const CancelToken& cancel) {
    tbb::enumerable_thread_specific<std::pair<Contents, PointBatch>> locals;
    parallel_ranges(file.block_count(), 1, [&](std::size_t begin, std::size_t end) {
        auto& [contents, batch] = locals.local();
        for (std::size_t i = begin; i < end; ++i) {
            cancel.check();
            file.read_block(i, batch);
            contents.add(batch, trajectory);
        }
    });
    Contents all;
    for (const auto& [contents, batch] : locals) all.add(contents);
    return all;
}

std::optional<Box3d> bounds_of(const FileReport& r) {
    if (r.read && r.contents.points) return r.contents.box;
    if (r.info.bounds_known) return r.info.bounds;
    return std::nullopt;
}

std::uint64_t points_of(const FileReport& r) { return r.read ? r.contents.points : r.info.points; }

void note_far_points(FileReport& r) {
    const auto b = bounds_of(r);
    if (!b) return;
    const double farthest = std::max({std::fabs(b->min.x), std::fabs(b->min.y), std::fabs(b->min.z),
                                      std::fabs(b->max.x), std::fabs(b->max.y), std::fabs(b->max.z)});
    const double unit = r.info.metres_per_unit > 0 ? r.info.metres_per_unit : 1;
    if (!(farthest * unit <= kMaxWorld_m))
        r.info.notes.push_back(
            "coordinates reach " + format_number(farthest) +
            ", which is not on Earth: build refuses this file (--salvage leaves such points out)");
}

void note_other_bounds(FileReport& r) {
    const Box3d& h = r.info.bounds;
    const Box3d& p = r.contents.box;
    if (!r.info.bounds_known || r.contents.points == 0) return;
    const double out = std::max({h.min.x - p.min.x, h.min.y - p.min.y, h.min.z - p.min.z, p.max.x - h.max.x,
                                 p.max.y - h.max.y, p.max.z - h.max.z});
    if (out > 0.01 + 1e-9 * std::fabs(p.max.y))
        r.info.notes.push_back("points reach " + fixed(out, 3) + " " + r.info.unit +
                               " beyond the bounds of the header; the bounds shown are those of the points");
}

FileReport together(const std::vector<FileReport>& reports) {
    FileReport all{
        "together: " + Tally::files_text(reports.size()), 0, reports[0].map, reports[0].info, {}, false};
    Tally formats, makers, systems, units, notes;
    std::optional<Box3d> bounds;
    PointFileInfo& info = all.info;
    info.points = info.points_lost = 0;
    for (const FileReport& r : reports) {
        const PointFileInfo& own = r.info;
        formats.add(own.format), makers.add(own.made_by), units.add(own.unit);
        systems.add(own.crs_name.empty() ? own.crs.substr(0, 70) : own.crs_name);
        for (const std::string& note : own.notes) notes.add(note);
        if (const auto b = bounds_of(r)) {
            if (!bounds) bounds = b;
            bounds->grow(*b);
        }
        all.bytes += r.bytes;
        all.contents.add(r.contents);
        info.points += points_of(r);
        info.points_lost += own.points_lost;
        info.has_gps_time |= own.has_gps_time, info.has_intensity |= own.has_intensity;
        info.has_label |= own.has_label, info.has_instance |= own.has_instance;
        info.has_sensor |= own.has_sensor;
        if (own.time_kind != info.time_kind) info.time_kind = PointFileInfo::TimeKind::unknown;
    }
    const bool one_system = systems.agree() && units.agree();
    info.bounds_known = one_system && bounds;
    if (info.bounds_known) info.bounds = *bounds;
    info.format = formats.text("unknown");
    info.made_by = makers.text("nobody says");
    info.unit = units.text("unknown");
    if (!systems.agree()) info.crs = info.crs_name = systems.text("not stated");
    info.columns.clear();
    info.notes.clear();
    if (!one_system) info.notes.push_back("the files are in different systems and have no common bounds");
    if (!notes.text("").empty()) info.notes.push_back(notes.text(""));
    return all;
}

}  // namespace citysplat::cli
