#pragma once

#include "core/file.hpp"
#include "model/point.hpp"
#include "tiling/sector.hpp"

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace citysplat::tiling {

/// Collects the points of one source by sector, in a bounded amount of memory.
///
/// Protocol: any number of threads add(); afterwards one or more threads take() sectors. Points wait in
/// memory as the chunks they came in. When the chunks exceed the budget, the thread that noticed becomes the
/// spiller: it takes the fullest sectors out of the map, half the budget in all, and appends them to one
/// temporary file while the others wait at their next add(). One open file, sequential writes; a source that
/// fits never touches it.
class Scatter {
  public:
    Scatter(std::filesystem::path spill_file, std::uint64_t budget_bytes);
    ~Scatter();
    Scatter(const Scatter&) = delete;
    Scatter& operator=(const Scatter&) = delete;

    void add(const Sector& sector, std::vector<TilePoint> points);

    /// All sectors with their number of points, sorted.
    std::vector<std::pair<Sector, std::uint64_t>> sectors() const;
    /// The points of one sector in the cell columns [first, last), in no particular order. Taking the last
    /// column forgets the sector's chunks.
    std::vector<TilePoint> take(const Sector& sector, int first_column, int last_column);

    std::uint64_t spilled_bytes() const { return spill_end_; }

  private:
    struct Run {
        std::uint64_t offset, points;
    };
    struct Bucket {
        std::vector<std::vector<TilePoint>> chunks;
        std::vector<TilePoint> small;  ///< where tiny chunks are joined
        std::vector<Run> runs;
        std::uint64_t points = 0, bytes = 0;
    };
    using Buckets = std::map<Sector, Bucket>;

    void spill(std::unique_lock<std::mutex>& lock);
    void write(Bucket& bucket);

    std::filesystem::path spill_path_;
    std::uint64_t budget_bytes_;
    mutable std::mutex mutex_;
    std::condition_variable spilled_;
    bool spilling_ = false;
    Buckets buckets_;
    std::uint64_t bytes_ = 0;
    File spill_file_;
    std::uint64_t spill_end_ = 0;
};

}  // namespace citysplat::tiling
