#pragma once

#include "core/math/box.hpp"
#include "core/words.hpp"
#include "model/point.hpp"
#include "model/sensor_mask.hpp"
#include "model/sweep.hpp"
#include "model/trajectory.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace citysplat {

struct Adjustment;

/// How an input is to be read. Everything here can change results.
struct ReadOptions {
    /// Coordinates that are not metres: refused, scaled to metres, or delivered as they are. The last is for
    /// looking at files; it also lets coordinates pass that are not on Earth.
    enum class Units { refuse, scale, as_is };
    /// Which library decodes LAS and LAZ. `automatic`: our own reader, LASlib where that cannot.
    enum class Reader { automatic, native, laslib };
    static constexpr Words<Units, 3> kUnits{{"refuse", "scale", "as-is"}};
    static constexpr Words<Reader, 3> kReaders{{"auto", "native", "laslib"}};

    Units units = Units::refuse;
    Reader reader = Reader::automatic;
    /// Leave out what is damaged instead of refusing the file; every lost point is counted
    /// (PointFileInfo::points_lost, PointBatch::damaged).
    bool salvage = false;
    /// LAS, LAZ: the bounds in the header are wrong; do not hold the points to them.
    bool ignore_bounds = false;
    /// Assigned to files that do not say; contradicting a file that does is an InputError.
    std::string crs{};
    /// Convert the coordinates to this system, which is in metres ("EPSG:n" or WKT); empty: leave them.
    std::string to_crs{};
    /// Values of intensity that become 0 and 65535. Default: by the column's type, see docs/inputs.md.
    std::optional<std::pair<double, double>> intensity_range{};
    /// A file of labels for this cloud, one per point (docs/inputs.md); replaces the labels inside.
    std::filesystem::path labels{};
    /// Names of the columns of a text file without a header line, e.g. "x y z intensity label".
    std::string text_columns{};
    /// The points are those of one scan of a drive.
    std::optional<Sweep> sweep{};
    /// Points that are left out by where the sensor saw them. Boxes and cells need a sweep.
    SensorMask mask{};
    /// Cities of earlier versions: a scan in the frame of the sensor at this pose, all of it at one time.
    std::optional<Pose> world_from_sensor{};
    std::optional<double> scan_time_s{};
    /// Where an adjusted trajectory puts the points (io/input/adjusted_file.hpp); nullptr: they stay.
    std::shared_ptr<const Adjustment> adjustment{};
};

/// What the header of a point file says, after it has been checked against the file.
struct PointFileInfo {
    std::string format;             ///< "LAS 1.4, point format 6", "PLY binary_little_endian", …
    std::uint64_t points = 0;       ///< that can be read
    std::uint64_t points_lost = 0;  ///< claimed but not in the file; only with ReadOptions::salvage
    Box3d bounds;                   ///< as the header claims; `bounds_known` false where it does not say
    bool bounds_known = false;
    std::string crs;       ///< WKT or "EPSG:n"; empty when the file does not say
    std::string crs_name;  ///< for people
    std::string unit = "metre";
    double metres_per_unit = 1.0;  ///< 0 for degrees
    double vertical_metres_per_unit = 1.0;
    bool has_gps_time = false, has_intensity = false, has_label = false, has_sensor = false;
    bool has_instance = false;
    /// What GPS times count: nobody says; seconds of a GPS week; seconds since 1980-01-06 minus 10⁹.
    enum class TimeKind { unknown, week_seconds, adjusted_standard };
    TimeKind time_kind = TimeKind::unknown;
    std::string made_by;               ///< system and software, as the file says
    std::vector<std::string> columns;  ///< what the file calls its columns
    std::vector<std::string> notes;    ///< oddities worth a line to the user
};

/// A point file opened for reading. Points come in blocks; blocks are independent of each other, so that any
/// number of threads may read different blocks of one PointFile at once. Block order × order within a block
/// is file order. A flipped bit can hide until the last block: publish nothing before all have been read.
class PointFile {
  public:
    virtual ~PointFile() = default;
    virtual const PointFileInfo& info() const = 0;
    virtual std::size_t block_count() const = 0;
    /// Replaces `out`. Throws InputError naming file, record and field; IoError when the system fails.
    virtual void read_block(std::size_t index, PointBatch& out) const = 0;
};

}  // namespace citysplat
