#pragma once

#include "io/point_file.hpp"
#include "io/points/label_file.hpp"
#include "model/point.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What PLY, PCD, KITTI and text files have in common: records of named, typed columns.
namespace citysplat::io {

enum class Scalar : std::uint8_t { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 };
std::size_t bytes_of(Scalar type);
/// One value in the bytes of a file. Requires bytes_of(type) bytes.
double value_at(const std::byte* at, Scalar type, bool big_endian);

struct Column {
    std::string name;
    Scalar type = Scalar::f64;
    std::size_t at = 0;  ///< byte in the record; in text the number of the column
};

/// What a column means to us. docs/inputs.md lists the names that are recognised.
enum class Role : std::uint8_t {
    x,
    y,
    z,
    gps_time,
    intensity,
    label,
    instance,
    scan_angle,
    sensor_x,
    sensor_y,
    sensor_z,
    withheld,
    beam
};
inline constexpr std::size_t kRoles = 13;

/// How a format departs from "every record is a point in world coordinates".
struct TableConvention {
    bool nan_is_no_return = false;           ///< PCD: NaN in x, y or z marks a beam without return
    Vec3d offset{0, 0, 0};                   ///< added to positions and sensor positions
    Vec3d metres_per_unit{1, 1, 1};          ///< multiplies them, after that
    std::optional<Vec3d> constant_sensor{};  ///< of every point, before both
};

/// `count` values in binary, one every `stride` bytes.
struct StridedValues {
    const std::byte* first;
    std::size_t stride, count;
    bool big_endian;
};

/// Turns records of columns into points. Immutable after choose_intensity_range(), so any number of threads
/// may use one decoder.
class TableDecoder {
  public:
    /// Finds the roles of the columns. Throws InputError when x, y or z is missing or named twice.
    TableDecoder(std::vector<Column> columns, std::string file_name, const ReadOptions& options,
                 TableConvention convention = {});

    const std::vector<Column>& columns() const { return columns_; }
    bool has(Role role) const { return column_of_[static_cast<std::size_t>(role)] != kNone; }
    /// Column::at of a role that is there.
    std::size_t column_at(Role role) const { return columns_[column_of_[static_cast<std::size_t>(role)]].at; }
    std::size_t column_index(Role role) const { return column_of_[static_cast<std::size_t>(role)]; }
    bool has_label() const { return labels_ || has(Role::label); }
    bool has_instance() const { return has(Role::instance) || (labels_ && labels_->has_instances()); }
    bool has_sensor() const { return has(Role::sensor_x) || convention_.constant_sensor; }
    /// has_*, columns and notes of `info`.
    void describe(PointFileInfo& info) const;

    /// Opens the separate file of labels, if the options name one, for `records` records.
    void use_labels(std::uint64_t records);
    /// Intensity of unknown scale (a float column) is taken as 0…1, 0…255 or 0…65535 by what the first block
    /// holds, unless the options say. Call with the first records before any decoding.
    void choose_intensity_range(std::span<const double> sample);
    bool wants_intensity_sample() const;

    /// Sizes the columns of `out` for `count` points.
    void begin(PointBatch& out, std::size_t count) const;
    /// Decodes whole binary records into out[at…].
    void decode(std::span<const std::byte> records, std::size_t stride, bool big_endian, PointBatch& out,
                std::size_t at) const;
    /// One column of all records stored together (PCD binary_compressed).
    void decode_column(std::size_t column, std::span<const std::byte> values, PointBatch& out) const;
    /// One record of text, one number per column.
    void decode_row(std::span<const double> row, PointBatch& out, std::size_t at) const;
    /// What is wrong with a row of text whose values do not fit the types the header gives them.
    std::optional<std::string> misfit(std::span<const double> row) const;
    /// Values of one column of binary records.
    std::vector<double> values_of(Role role, std::span<const std::byte> records, std::size_t stride,
                                  bool big_endian) const;
    /// Checks all decoded points and removes those without return. Throws InputError naming the record and
    /// the column; under salvage such points are removed and counted. `place` stands in the message instead
    /// of the name of the file, unless it is empty.
    void finish(std::uint64_t first_record, PointBatch& out, std::string_view place = {}) const;

  private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    void find_roles();
    Vec3d to_metres(Vec3d position) const;
    void store(Role role, double value, PointBatch& out, std::size_t i) const;
    void store_strided(std::size_t role, const StridedValues& values, PointBatch& out, std::size_t at) const;
    std::string problem_of(const PointBatch& out, std::size_t i) const;

    std::vector<Column> columns_;
    std::array<std::size_t, kRoles> column_of_;
    std::string file_name_;
    bool salvage_;
    double furthest_;  ///< a coordinate beyond this is damage
    std::filesystem::path label_path_;
    std::shared_ptr<const LabelFile> labels_;
    TableConvention convention_;
    bool intensity_given_ = false;
    double intensity_low_ = 0, intensity_high_ = 65535;
    std::vector<std::string> notes_;
};

}  // namespace citysplat::io
