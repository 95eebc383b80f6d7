#pragma once

#include "core/file.hpp"
#include "io/point_file.hpp"
#include "model/region/region.hpp"

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

namespace citysplat::compare {

/// A cell of the plane.
struct Column {
    std::int64_t x = 0, y = 0;
    friend auto operator<=>(const Column&, const Column&) = default;
};

/// A point relative to the south-west corner of its column; z from 0.
struct ColumnPoint {
    float x, y, z;
    std::uint16_t label, reserved;
};
static_assert(sizeof(ColumnPoint) == 16);

/// Points scattered to square columns in a temporary file that is already deleted: it vanishes with the
/// process, however that ends. Memory: the points that wait to be written, a limited number, and 16 bytes for
/// each piece of a column in the file.
///
/// Threads: add() from several threads; afterwards read() from several threads.
class PointColumns {
  public:
    static constexpr double kSize_m = 32;
    static constexpr std::size_t kMostWaiting = std::size_t{1} << 22;  ///< 64 MiB
    /// Points within `halo_m` of a column's edge belong to the neighbour too. `most_waiting` changes no
    /// result.
    PointColumns(const std::filesystem::path& directory, double halo_m,
                 std::size_t most_waiting = kMostWaiting);

    /// With `only`: the points in that region.
    void add(const PointBatch& batch, const Region* only = nullptr);
    /// How many points are in memory and not yet in the file.
    std::size_t waiting() const { return waiting_; }
    /// Requires that adding is over.
    void finish();
    const std::vector<Column>& columns() const { return columns_; }
    /// Points of a column, halo included; none when it has none.
    std::vector<ColumnPoint> read(Column column) const;

  private:
    struct Bucket {
        std::vector<ColumnPoint> buffer;
        std::vector<std::pair<std::uint64_t, std::uint32_t>> chunks;  ///< offset, points
    };
    void put(Column column, const ColumnPoint& point);
    void flush(Bucket& bucket);

    double halo_m_;
    std::size_t most_waiting_, waiting_ = 0;
    File file_;
    std::uint64_t end_ = 0;
    std::mutex mutex_;
    std::map<Column, Bucket> buckets_;
    std::vector<Column> columns_;
};

}  // namespace citysplat::compare
