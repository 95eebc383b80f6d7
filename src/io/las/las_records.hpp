#pragma once

#include "io/las/las_header.hpp"
#include "io/points/label_file.hpp"
#include "model/point.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace citysplat::io {

/// Turns raw LAS point records, read from a file or decompressed from one, into columns. Immutable, so any
/// number of threads may use one decoder.
class LasRecordDecoder {
  public:
    LasRecordDecoder(const LasHeader& header, std::string file_name, const ReadOptions& options,
                     Vec3d metres_per_unit);

    /// Makes `out` a batch of `count` points, none of them decoded.
    void begin(PointBatch& out, std::size_t count) const;
    /// Makes room for `count` points in all.
    void grow(PointBatch& out, std::size_t count) const;
    /// Decodes whole records into out[at…].
    void decode(std::span<const std::byte> records, PointBatch& out, std::size_t at) const;
    /// Checks the values of all decoded points: coordinates on Earth and within the header's bounds, times
    /// finite. `first_record` is the number of out[0] in the file. Throws InputError naming the record; under
    /// salvage such points are removed and counted.
    void finish(std::uint64_t first_record, PointBatch& out) const;

    static constexpr std::uint64_t kLookPoints = 1000;
    /// Looks at some records that are stored as they are, kLookPoints or all: when most lie outside the
    /// header's bounds, it is the header that is wrong; the bounds are not used, and a note says so.
    /// Impossible return numbers and half a sensor position are noted too. Call before any other thread
    /// decodes.
    void look_at(std::span<const std::byte> plain_records, PointFileInfo& info);

    bool has_gps_time() const { return gps_at_ != 0; }
    bool has_instance() const { return instance_.bytes != 0 || (labels_ && labels_->has_instances()); }
    bool has_sensor() const { return sensor_[0].bytes != 0; }

  private:
    template <bool Extended>
    void decode_standard(const std::byte* raw, std::size_t count, PointBatch& out, std::size_t at) const;
    [[noreturn]] void refuse(std::uint64_t record, const std::string& problem) const;
    void decode_extra(const std::byte* raw, std::size_t count, PointBatch& out, std::size_t at) const;
    std::string problem_of(const PointBatch& out, std::size_t i) const;
    LasExtraField find_extra(const LasHeader& header, std::span<const std::string_view> names) const;

    std::string file_name_;
    bool salvage_;
    std::shared_ptr<const LabelFile> labels_;  ///< in a file of their own
    bool extended_;                            ///< formats 6–10
    std::size_t stride_, gps_at_ = 0;
    Vec3d scale_, offset_;  ///< to metres
    Box3d bounds_;          ///< of the header, in metres, with some slack
    double furthest_;       ///< a coordinate beyond this is damage
    Vec3d to_metres_;
    LasExtraField label_, instance_, sensor_[3];
    bool half_sensor_ = false;  ///< some of the three, which is nothing
};

}  // namespace citysplat::io
