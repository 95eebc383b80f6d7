#pragma once

#include "core/cancel.hpp"
#include "io/point_file.hpp"
#include "model/class_map.hpp"
#include "model/trajectory.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What `info` finds out about files and tells.
namespace citysplat::cli {

/// What the points themselves say; sums and extrema, so that threads may add in any order.
struct Contents {
    std::uint64_t points = 0, no_return = 0, damaged = 0, withheld = 0;
    SensorMask::Counts masked{};
    std::uint64_t not_covered = 0;  ///< with a time that the trajectory does not have
    std::map<std::uint16_t, std::uint64_t> classes;
    Box3d box = kEmptyBox;
    double time_begin_s = 1e300, time_end_s = -1e300;
    std::uint16_t intensity_min = 65535, intensity_max = 0;

    void add(const PointBatch& batch, const Trajectory* trajectory);
    void add(const Contents& other);
};
Contents read_contents(const PointFile& file, const Trajectory* trajectory, const CancelToken& cancel);

/// The map the user names, or the usual one of the format.
class ClassMaps {
  public:
    explicit ClassMaps(const std::string& wanted) {
        if (!wanted.empty()) wanted_ = ClassMap::load(wanted);
    }
    const ClassMap* of(const PointFileInfo& info) const {
        if (wanted_) return &*wanted_;
        if (info.format.starts_with("LA")) return &asprs_;
        return info.format.starts_with("KITTI") ? &kitti_ : &none_;
    }

  private:
    std::optional<ClassMap> wanted_;
    ClassMap asprs_ = ClassMap::load("asprs"), kitti_ = ClassMap::load("semantic_kitti"), none_;
};

/// Of one file, or of several taken together.
struct FileReport {
    std::string name;
    std::uint64_t bytes = 0;
    const ClassMap* map = nullptr;  ///< belongs to ClassMaps
    PointFileInfo info;
    Contents contents;
    bool read = false;
};

/// The bounds of the points where they were read, of the header otherwise.
std::optional<Box3d> bounds_of(const FileReport& report);
std::uint64_t points_of(const FileReport& report);

/// Points that masks left out, by reason: as JSON, and as a line for people ("" when there are none).
nlohmann::json masked_json(const SensorMask::Counts& masked);
std::string masked_text(const SensorMask::Counts& masked);

/// Other verbs refuse what lies beyond the Earth; `info` shows it.
void note_far_points(FileReport& report);
/// Headers are not always right about where the points are.
void note_other_bounds(FileReport& report);
/// Several files taken together, their points as if only headers had been read. Requires at least one.
FileReport together(const std::vector<FileReport>& reports);

/// A line of a page; a value of several lines goes on below itself.
void page_line(std::string& out, std::string_view name, const std::string& value);
/// A number of a page.
std::string fixed(double v, int decimals);
std::string page_of(const FileReport& report);
/// One JSON object for all, sums on top.
nlohmann::json json_of(const std::vector<FileReport>& reports, const FileReport& all,
                       const std::vector<std::string>& errors);

}  // namespace citysplat::cli
