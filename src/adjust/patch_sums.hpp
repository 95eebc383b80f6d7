#pragma once

#include "core/cancel.hpp"
#include "core/file.hpp"
#include "core/math/lattice.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace citysplat::adjust {

/// Exact sums over the points of one patch: a cube of 25 cm on the lattice × a time slot.
struct PatchSums {
    static constexpr int kEdgeBits = kLatticeBits - 2;  ///< the edge is 2ⁿ lattice steps
    static constexpr int kSectorBits = 6;               ///< a sector is 2ⁿ patches wide: 16 m
    static constexpr double kTicks = 1 << 20;           ///< of a slot

    std::int32_t px, py, pz;  ///< which cube
    std::uint32_t slot;
    std::uint32_t points, reserved;
    std::int64_t sum[3];     ///< of offsets from the cube's corner, in lattice steps
    std::int64_t second[6];  ///< of their products: xx xy xz yy yz zz
    std::int64_t ticks;      ///< of the times within the slot

    /// One point, at the beginning of slot 0.
    static PatchSums of(const LatticePoint& at);
    Vec3d origin_m() const;
    std::pair<std::int32_t, std::int32_t> sector() const { return {py >> kSectorBits, px >> kSectorBits}; }
    /// The canonical order: sector by sector.
    auto key() const { return std::tuple(py >> kSectorBits, px >> kSectorBits, px, py, pz, slot); }
    void join(const PatchSums& other);
};
static_assert(sizeof(PatchSums) == 104);

/// Puts sums into canonical order, each patch once.
void sort_and_join(std::vector<PatchSums>& sums);

/// Collects sums in bounded memory. Protocol: any number of threads add(); then one thread merges. What
/// exceeds the budget is sorted and appended to a temporary file by the thread that noticed, while the others
/// wait.
class PatchRuns {
  public:
    PatchRuns(std::filesystem::path scratch, std::uint64_t budget_bytes);
    void add(const std::vector<PatchSums>& sums);
    /// Visits every patch once, in canonical order.
    void merge(const CancelToken& cancel, const std::function<void(const PatchSums&)>& visit);

  private:
    struct Run {
        std::uint64_t begin, end;  ///< in sums
    };
    void spill();

    std::filesystem::path scratch_;
    std::size_t most_waiting_;
    std::mutex mutex_;
    std::vector<PatchSums> waiting_;
    File file_;
    std::vector<Run> runs_;
};

}  // namespace citysplat::adjust
